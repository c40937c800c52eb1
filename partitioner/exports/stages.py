"""A plan as ordered stages of whole modules, as consumers with pipelines take it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, shown
from partitioner.evaluation.frame import read_numbered, read_solution
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import AnySolution, Solution, solution_of
from partitioner.exports.module_stages import ModuleStage, Stages
from partitioner.exports.stage_rules import (
    cut,
    kinds,
    misnamed,
    replicated,
    skipping,
    tied,
    without_stage,
    wrong_ranks,
)
from partitioner.exports.target import Target
from partitioner.exports.traced_rules import traced_flaws
from partitioner.workload.graph import Ints
from partitioner.workload.modules import Modules, modules_of, without_layers
from partitioner.workload.workload import Workload


def stages_of(workload: Workload, plan: AnySolution, target: Target) -> Stages:
    """Return the stages of a plan: consecutive modules on one device make a stage.

    Every node is a module of its own for targets that cut anywhere. Modules stand in the order of the plan's
    stages if it is a chain, else in forward order.

    Raises
    ------
    ExportError
        If a module is cut in two, a module's name is that of another one, or a rule of the target is broken.
    WorkloadError
        If the placement does not fit the workload.

    Examples
    --------
    >>> from partitioner.workload.graph import Graph
    >>> from partitioner.workload.devices import Devices
    >>> graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (1, 2)], layer=["a.0", "a.0", "a.1"])
    >>> placement = {0: "accelerator0", 1: "accelerator0", 2: "accelerator1"}
    >>> stages_of(Workload(graph, Devices.accelerated(2)), placement, Target("line", line=True)).rank_of
    (0, 1)
    """
    solution = solution_of(plan)
    placed, copies, ordered, staged = _read(workload, solution)
    modules = modules_of(without_layers(workload.graph) if target.anywhere else workload.graph)
    target.refuse(list(misnamed(modules)), any_plan=True)
    ways = _of_ways(placed, copies, ordered, modules, solution.alternatives, target)
    target.refuse([*cut(staged, modules), *ways, *replicated(placed, copies)])
    home = np.zeros(len(modules.names), dtype=np.int64)
    home[modules.of[modules.of >= 0]] = staged.device[modules.of >= 0]
    runs = [list(group) for _, group in groupby(_in_order(staged, home, ordered), home.__getitem__)]
    names = modules.names
    devices = placed.names if staged is placed or solution.order is None else solution.order
    stages = tuple(ModuleStage(tuple(names[i] for i in run), devices[home[run[0]]]) for run in runs)
    stage = np.full(len(names) + 1, -1, dtype=np.int64)
    stage[[i for run in runs for i in run]] = np.repeat(np.arange(len(runs)), list(map(len, runs)))
    found = Stages(stages, stage[modules.of], module_ways(placed, modules, solution.alternatives))
    may_tie = target.ties or (target.traced and not workload.graph.backward.any())
    target.refuse(
        [
            *(skipping(placed, modules, found) if target.line and not target.traced else ()),
            *(traced_flaws(placed, modules, found) if target.traced else ()),
            *wrong_ranks(found, target),
            *(() if may_tie else tied(workload, modules, found, target)),
            *(kinds(workload, found, target.one_kind) if target.own_memory or target.one_kind else ()),
            *without_stage(placed, found),
        ]
    )
    return found


def _of_ways(
    placed: Placed,
    copies: Replicas,
    ordered: tuple[int, ...] | None,
    modules: Modules,
    chosen: Mapping[Any, str],
    target: Target,
) -> list[Flaw]:
    """Return a flaw for whatever the target cannot say of the ways in which nodes run."""
    order = tuple(dict.fromkeys(placed.device.tolist())) if ordered is None else ordered
    return [
        *divided(placed, copies, order),
        *unsaid(placed, order, chosen, target),
        *torn_ways(placed, modules, chosen),
    ]


def _read(workload: Workload, solution: Solution) -> tuple[Placed, Replicas, tuple[int, ...] | None, Placed]:
    """Return the placement, its replicas, the order of the stages, and the placement with stages for devices.

    The last one is the placement itself where each device has one stage.
    """
    if solution.stage_of is None:
        placed, copies, ordered = read_solution(workload.graph, workload.devices, solution)
        return placed, copies, ordered, placed
    placed, copies, stages = read_numbered(workload.graph, workload.devices, solution)
    return placed, copies, tuple(range(len(stages.order))), stages.staged


def _in_order(placed: Placed, home: Ints, ordered: tuple[int, ...] | None) -> list[int]:
    """Return the modules in the order of the chain of their devices, if it is one, and in forward order."""
    shape = placement_shape(placed.graph, placed.device, placed.names)
    place = np.zeros(len(placed.names), dtype=np.int64)
    if shape.is_chain:
        order = [placed.names.index(name) for name in shape.order] if ordered is None else list(ordered)
        place[order] = np.arange(len(order))
    return list(np.argsort(place[home], kind="stable").tolist())


# The rules for plans whose nodes run by alternatives: which tool can say so, and of which modules.

OWN = "its own figures"


def divided(placed: Placed, copies: Replicas, order: Sequence[int]) -> Iterator[Flaw]:
    """Yield a flaw for each stage that several devices run together; `order` has the stages' devices."""
    for number, stage in enumerate(order):
        together = int(placed.degree[placed.device == stage].max(initial=1))
        if together > 1:
            each = f", in each of {copies.count[stage]} copies" if copies.count[stage] > 1 else ""
            where = f"is run by {together} devices together{each}"
            rule = "tensor-parallel stages cannot be expressed"
            yield Flaw(f"stage {number} (of {placed.names[stage]})", "", where, rule)


def unsaid(placed: Placed, order: Sequence[int], chosen: Mapping[Any, str], target: Target) -> Iterator[Flaw]:
    """Yield a flaw for each stage that has chosen ways if the target has no words for them."""
    if target.ways:
        return
    for number, stage in enumerate(order):
        nodes = (placed.graph.ids[i] for i in np.flatnonzero(placed.device == stage).tolist())
        counts = Counter(chosen[node] for node in nodes if node in chosen)
        if counts:
            where = f"runs {', '.join(f'{count} nodes by {shown(way)}' for way, count in counts.items())}"
            yield Flaw(
                f"stage {number} (of {placed.names[stage]})",
                "",
                where,
                "must run all nodes by their own figures",
            )


def torn_ways(placed: Placed, modules: Modules, chosen: Mapping[Any, str]) -> Iterator[Flaw]:
    """Yield a flaw for each module whose nodes do not all run in one way."""
    ways = _ways_by_module(placed, modules, chosen)
    for name, found in ways.items() if chosen else ():
        if len(found) > 1:
            words = " and ".join(OWN if way is None else shown(way) for way in found)
            yield Flaw(f"module {name}", "", f"runs by {words}", "all nodes of a module must run in one way")


def module_ways(placed: Placed, modules: Modules, chosen: Mapping[Any, str]) -> dict[str, str]:
    """Return the name of the way of each module that does not run by its own figures."""
    ways = _ways_by_module(placed, modules, chosen)
    return {name: way for name, found in ways.items() for way in found if way is not None}


def _ways_by_module(
    placed: Placed, modules: Modules, chosen: Mapping[Any, str]
) -> dict[str, dict[str | None, None]]:
    """Return the distinct ways of the nodes of each module that have several; None for own figures."""
    graph, found = placed.graph, {name: dict[str | None, None]() for name in modules.names}
    for i in np.flatnonzero(modules.of >= 0).tolist():
        if graph.ids[i] in graph.alternatives:
            found[modules.names[modules.of[i]]][chosen.get(graph.ids[i])] = None
    return found
