"""A plan as ordered stages of whole modules, as consumers with pipelines take it."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from partitioner.evaluation.chosen import refuse_alternatives
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
from partitioner.workload.modules import modules_of
from partitioner.workload.workload import Workload


def stages_of(workload: Workload, plan: AnySolution, target: Target) -> Stages:
    """Return the stages of a plan: consecutive modules on one device make a stage.

    Modules stand in the order of the plan's stages if it is a chain, else in forward order.

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
    refuse_alternatives(solution.alternatives, "an export")
    placed, copies, ordered, staged = _read(workload, solution)
    modules = modules_of(workload.graph)
    target.refuse(list(misnamed(modules)), any_plan=True)
    target.refuse([*cut(staged, modules), *replicated(placed, copies.further)])
    home = np.zeros(len(modules.names), dtype=np.int64)
    home[modules.of[modules.of >= 0]] = staged.device[modules.of >= 0]
    runs = [list(group) for _, group in groupby(_in_order(staged, home, ordered), home.__getitem__)]
    names = modules.names
    devices = placed.names if staged is placed or solution.order is None else solution.order
    stages = tuple(ModuleStage(tuple(names[i] for i in run), devices[home[run[0]]]) for run in runs)
    stage = np.full(len(names) + 1, -1, dtype=np.int64)
    stage[[i for run in runs for i in run]] = np.repeat(np.arange(len(runs)), list(map(len, runs)))
    found = Stages(stages, stage[modules.of])
    may_tie = target.ties or (target.traced and not workload.graph.backward.any())
    target.refuse(
        [
            *(skipping(placed, modules, found) if target.line and not target.traced else ()),
            *(traced_flaws(placed, modules, found) if target.traced else ()),
            *wrong_ranks(found, target),
            *(() if may_tie else tied(workload, modules, found, target)),
            *(kinds(workload, found) if target.one_kind else ()),
            *without_stage(placed, found),
        ]
    )
    return found


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
