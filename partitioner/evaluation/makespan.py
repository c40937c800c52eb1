"""The time at which the last operator ends (objective ``"makespan"``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.operator_simulation import Operators, topological_rank
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.transfers import Transfers

PLACE = "execution order"


@dataclass(frozen=True, eq=False)
class Makespan:
    """The time of one step, and its parts.

    Parameters
    ----------
    value
        When the last operator ends.
    length
        Shape (n,): the time of each operator on its device.
    sent, received
        Shape (devices,): the total time of the transfers out of and into each device.
    schedule
        Every operator, in order of start.
    """

    value: float
    length: Floats
    sent: Floats
    received: Floats
    schedule: Schedule


def makespan_of(placed: Placed, transfers: Transfers, execution_order: Sequence[Any] | None) -> Makespan:
    """Return the makespan if every device runs its operators one by one.

    Parameters
    ----------
    placed
        The placement.
    transfers
        The model of transfer times.
    execution_order
        All node ids, producers before consumers. None: the operator that is ready first runs first, by the
        rule in :func:`partitioner.evaluate`.

    Raises
    ------
    WorkloadError
        If the order does not list every node once, producers before consumers.
    """
    rank = topological_rank(placed) if execution_order is None else _ranks(placed.graph, execution_order)
    operators = Operators(placed, transfers, rank, execution_order is not None)
    operators.run()
    sent, received = np.array(operators.sent), np.array(operators.received)
    value = max(operators.finish, default=0.0)
    return Makespan(value, np.array(operators.length), sent, received, _schedule(placed, operators))


def _ranks(graph: Graph, order: Sequence[Any]) -> list[int]:
    """Return the position of every node in the order."""
    flaws = _listing_flaws(graph, order)
    place = {} if flaws else {node: i for i, node in enumerate(order)}
    rank = np.array([place.get(node, 0) for node in graph.ids], dtype=np.int64)
    late = rank[graph.edges[:, 0]] > rank[graph.edges[:, 1]]
    flaws += [
        Flaw(PLACE, "node", shown(graph.ids[v]), f"must come after {shown(graph.ids[u])}")
        for u, v in graph.edges[late].tolist()
    ]
    if flaws:
        raise WorkloadError(flaws)
    return [int(place) for place in rank]


def _listing_flaws(graph: Graph, order: Any) -> list[Flaw]:
    """Return a flaw for each id that is unknown, missing or listed more than once."""
    if isinstance(order, str) or not isinstance(order, Sequence | np.ndarray):
        return [Flaw(PLACE, "", shown(order), "must be a sequence of node ids")]
    unknown = [v for v in order if not isinstance(v, int | str | np.integer) or v not in graph.position]
    if unknown:
        rule = "is not the id of a node of the graph"
        return [Flaw(PLACE, "node", shown(node), rule) for node in unknown]
    times = Counter(order)
    return [
        Flaw(PLACE, "node", shown(node), "is listed more than once" if times[node] else "is missing")
        for node in graph.ids
        if times[node] != 1
    ]


def _schedule(placed: Placed, operators: Operators) -> Schedule:
    """Return the schedule: each operator as an entry, and the path that determines when the last one ends."""
    order = sorted(operators.begun, key=operators.start.__getitem__)
    place = {v: i for i, v in enumerate(order)}
    entries = tuple(
        Run(
            device=placed.names[operators.device[v]],
            index=None,
            start=operators.start[v],
            finish=operators.finish[v],
            transfer_in=0.0,
            compute=operators.length[v],
            transfer_out=0.0,
            nodes=(placed.graph.ids[v],),
            backward=bool(placed.graph.backward[v]),
            waits_for=None if (before := operators.cause[v]) is None else place[before],
        )
        for v in order
    )
    return Schedule(entries, _critical(operators, place))


def _critical(operators: Operators, place: dict[int, int]) -> tuple[int, ...]:
    finish = operators.finish
    v = max(range(len(finish)), key=finish.__getitem__, default=None)
    path = []
    while v is not None:
        path.append(place[v])
        v = operators.cause[v]
    return tuple(reversed(path))
