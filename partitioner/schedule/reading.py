"""The passes of a sample, read from the user's graph, devices and solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.degrees import degree_violations
from partitioner.evaluation.frame import read_numbered, read_solution
from partitioner.evaluation.order import order_violations
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import AnySolution, Solution, solution_of
from partitioner.schedule.passes import Passes
from partitioner.schedule.pieces import backward_against_order, pieces_of, pieces_of_stages
from partitioner.schedule.work import passes_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph


def read_passes(
    graph: Graph,
    devices: Devices,
    plan: AnySolution,
    *,
    replicas: Mapping[str, Sequence[str]] | None = None,
    order: Sequence[str] | None = None,
    links: str = "host",
) -> Passes:
    """Return the passes of a sample under a plan; the arguments are those of :func:`simulate`.

    Raises
    ------
    WorkloadError
        If the placement, the replicas or the order do not fit the graph or the devices.
    """
    given = {"replicas": replicas, "order": order}
    parts: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    solution = replace(solution_of(plan), **parts)
    if solution.stage_of is not None:
        return _of_stages(graph, devices, solution, links)
    placed, copies, ordered = read_solution(graph, devices, solution)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    against = order_violations(placed, shape, ordered) if ordered else ()
    refuse([Flaw("order", "", "", words) for words in against] + _unable(placed, copies))
    return passes_of(placed, copies, pieces_of(placed, shape, ordered), links)


def _of_stages(graph: Graph, devices: Devices, solution: Solution, links: str) -> Passes:
    """Return the passes of a solution that says the stage of every node."""
    placed, copies, stages = read_numbered(graph, devices, solution)
    against = (*stages.against_order(), *backward_against_order(graph, stages.of, stages.staged.names))
    refuse([Flaw("stage_of", "", "", words) for words in against] + _unable(placed, copies))
    return passes_of(placed, copies, pieces_of_stages(placed, stages.order, stages.of), links)


def _unable(placed: Placed, copies: Replicas) -> list[Flaw]:
    """Return a flaw for each node without a time on its device, and for each stage of several degrees."""
    without = [
        Flaw(f"node {shown(placed.graph.ids[i])}", "", "", f"has no time on {placed.names[placed.device[i]]}")
        for i in np.flatnonzero(placed.row < 0).tolist()
    ]
    return without + [Flaw("alternatives", "", "", words) for words in degree_violations(placed, copies)]


def refuse(flaws: list[Flaw]) -> None:
    """Raise a `WorkloadError` with the flaws if there are any."""
    if flaws:
        raise WorkloadError(flaws)
