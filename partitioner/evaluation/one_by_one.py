"""The evaluation of operators that every device runs one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.frame import completed, device_loads, read_solution
from partitioner.evaluation.notes import notes_on_levels
from partitioner.evaluation.operator_arrays import arrays_of, times_of, topological_order
from partitioner.evaluation.operator_simulation import NOTHING, EagerOperators, Operators
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph, Ints
from partitioner.workload.pass_order import ADDED, order_is_open, with_pass_order
from partitioner.workload.transfers import DEFAULT_TRANSFERS, Transfers


def evaluate_makespan(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return when the last operator ends; the load of a device is the time of its operators."""
    notes = (*((ADDED,) if order_is_open(graph) else ()), *notes_on_levels(devices))
    placed, copies, ordered = read_solution(with_pass_order(graph), devices, solution)
    found = makespan_of(placed, terms.transfers or DEFAULT_TRANSFERS, solution.execution_order)
    of_pass = [placed.graph.backward == b for b in (False, True)]
    compute = np.array(
        [np.bincount(placed.device[mine], found.length[mine], len(placed.names)) for mine in of_pass]
    )
    nothing = np.zeros_like(found.sent)
    into, out = np.array([found.received, nothing]), np.array([found.sent, nothing])
    evaluation = Evaluation(
        objective="makespan",
        value=found.value,
        loads=device_loads(placed, compute.sum(axis=0), compute, into, out),
        violations=violations_of(placed),
        shape=placement_shape(placed.graph, placed.device, placed.names),
        schedule=found.schedule,
        notes=notes,
        by_operator=True,
    )
    return completed(evaluation, placed, copies, ordered, terms)


# The time at which the last operator ends (objective ``"makespan"``).

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
    graph, eager = placed.graph, execution_order is None
    order = topological_order(graph) if execution_order is None else _positions(graph, execution_order)
    arrays = arrays_of(placed, transfers, order)
    simulation = EagerOperators if eager else Operators
    operators = simulation(arrays, len(placed.names), transfers.contention)
    operators.run()
    value, length = max(operators.finish, default=0.0), times_of(placed)
    return Makespan(value, length, *operators.exchanged(), _schedule(placed, operators))


def _positions(graph: Graph, order: Sequence[Any]) -> Ints:
    """Return the position of every node in the graph, in the order."""
    flaws = _listing_flaws(graph, order)
    if flaws:
        raise WorkloadError(flaws)
    listed = np.array([graph.position[node] for node in order], dtype=np.int64)
    rank = np.argsort(listed)
    late = rank[graph.edges[:, 0]] > rank[graph.edges[:, 1]]
    flaws = [
        Flaw(PLACE, "node", shown(graph.ids[v]), f"must come after {shown(graph.ids[u])}")
        for u, v in graph.edges[late].tolist()
    ]
    if flaws:
        raise WorkloadError(flaws)
    return listed


def _listing_flaws(graph: Graph, order: Any) -> list[Flaw]:
    """Return a flaw for each id that is unknown, missing or listed more than once."""
    if isinstance(order, str) or not isinstance(order, Sequence | np.ndarray):
        return [Flaw(PLACE, "", shown(order), "must be a sequence of node ids")]
    if (
        len(order) == len(graph)
        and set(map(type, order)) <= {int, str}
        and set(order) == graph.position.keys()
    ):
        return []
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
    graph, arrays, start = placed.graph, operators.arrays, np.array(operators.start)
    begun = np.array(operators.begun, dtype=np.int64)
    order = begun[np.argsort(start[begun], kind="stable")]
    place, cause, node = np.argsort(order), np.array(operators.cause)[order], arrays.node[order]
    waits = [None if c == NOTHING else p for c, p in zip(cause.tolist(), place[cause].tolist(), strict=True)]
    columns = (
        [placed.names[d] for d in placed.device[node].tolist()],
        repeat(None),
        start[order].tolist(),
        np.array(operators.finish)[order].tolist(),
        repeat(0.0),
        np.array(arrays.length)[order].tolist(),
        repeat(0.0),
        [(graph.ids[v],) for v in node.tolist()],
        graph.backward[node].tolist(),
        waits,
    )
    finish = np.empty(len(order))
    finish[arrays.node] = operators.finish
    last = place[np.argsort(arrays.node)[np.argmax(finish)]]
    return Schedule(tuple(map(Run, *columns)), _critical(waits, int(last)))


def _critical(waits: Sequence[int | None], last: int) -> tuple[int, ...]:
    """Return the path of entries that ends with the last one."""
    path, before = [last], waits[last]
    while before is not None:
        path.append(before)
        before = waits[before]
    return tuple(reversed(path))
