"""Method ``pipedream``: the plan of PipeDream's planner, with its value by the model of all methods.

The arguments of PipeDream's planner, made from a contracted problem: layers and levels of machines.

The planner's input: the layers of a profile and their edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, WorkloadError
from partitioner.methods.baselines.pipedream.layers import Layers, MachineLevel, PipeDreamPlan, Stage
from partitioner.methods.baselines.pipedream.plan import plan
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.bracket import Stopped
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.method import Outcome, Part, Settings, no_split
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import PipelineProblem


class View(NamedTuple):
    """The arguments of the planner.

    Parameters
    ----------
    layers
        One layer for each supernode, in the order of their first nodes in the user's graph.
    supernode
        Shape (n,): the supernode of each layer.
    levels
        The levels of machines, the innermost first.
    """

    layers: Layers
    supernode: Ints
    levels: list[MachineLevel]


def view_of(problem: PipelineProblem, kind: int) -> View:
    """Return the planner's arguments for a problem whose supernodes all run on one kind of device.

    The time of a layer is that of both passes. Its activation is the cost of the tensors that leave the
    supernode forward, times the bandwidth, so that a result of the network has none (the planner would count
    it at all later cuts). Without a bandwidth weights take no time, and costs are used as bytes.
    """
    bandwidth = float(problem.pipeline.bandwidth[kind])
    linked = math.isfinite(bandwidth)
    time_factor = bandwidth if linked else 1.0
    supernode = np.argsort(_first_nodes(problem))
    layer = np.argsort(supernode)
    arcs = np.stack((problem.successors.owners(), problem.successors.items), axis=1)
    layers = Layers(
        time=problem.time[kind].sum(axis=0)[supernode],
        activation=(problem.output * (problem.transfer_factor[kind] * time_factor))[supernode],
        parameters=problem.pipeline.weights[supernode] * linked,
        edges=layer[arcs],
    )
    return View(layers, supernode, levels_of(problem, kind, time_factor))


def levels_of(problem: PipelineProblem, kind: int, bandwidth: float) -> list[MachineLevel]:
    """Return the machines of each level and the bandwidth between them; `bandwidth` is the innermost one."""
    pipeline = problem.pipeline
    sizes = [1, *pipeline.group[:, kind].tolist(), int(problem.count[kind])]
    slowdowns = [1.0, *pipeline.slowdown.tolist()]
    machines = [outer // inner for inner, outer in pairwise(sizes)]
    return [MachineLevel(m, bandwidth / slow) for m, slow in zip(machines, slowdowns, strict=True)]


def devices_of(stage: Stage, levels: Sequence[MachineLevel]) -> tuple[int, ...]:
    """Return the numbers of a stage's devices, group by group.

    Examples
    --------
    >>> twice = Stage(layers=(0,), first=(1, 0), replicas=(2, 2))
    >>> devices_of(twice, [MachineLevel(4, 8.0), MachineLevel(2, 1.0)])
    (1, 2, 5, 6)
    """
    numbers, size = np.zeros(1, dtype=np.int64), 1
    for level, first, replicas in zip(levels, stage.first, stage.replicas, strict=True):
        groups = size * np.arange(first, first + replicas)
        numbers, size = (groups[:, None] + numbers).ravel(), size * level.machines
    return tuple(numbers.tolist())


def _first_nodes(problem: PipelineProblem) -> Ints:
    """Return the first node of each supernode, shape (n,)."""
    return np.unique(problem.member, return_index=True)[1].astype(np.int64)


OTHER_KINDS = "PipeDream's planner uses one kind of device: all others stay idle"
ALL_CUTS = "steps from the first source do not reach every layer: planned over all cuts"
IDLE = "no pipeline uses all devices: some may stay idle"
NO_PIPELINE = "PipeDream's planner finds no pipeline over these devices"
TOO_MANY = "the graph can be cut at more than {:,} places, too many for PipeDream's planner"
LATE = "PipeDream's planner did not end within the time limit"
MOST_STATES, MOST_ON_LEVELS = 5000, 1500


def solve_pipedream(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Return the plan of PipeDream's released planner, with a bound on every plan: method ``pipedream``.

    The planner minimises the time that it predicts, transfers between stages included, on devices of one
    kind, with or without replicas. The value of the outcome is another one: that of the model of all methods.
    The planner ignores limits of memory and of replicas; a plan that breaks them is not returned. Nodes that
    cost nothing are merged with a neighbour, and on equal links there are at most as many unreplicated stages
    as supernodes. There is no plan if the planner does not end before the deadline.

    Raises
    ------
    OptionError
        If the kind of device may not run all of the graph.
    """
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    kind, notes = _kind(problem)
    view = view_of(problem, kind)
    planned, remarks = _planned(view, settings, straight=bool(problem.copies[kind] == 1))
    notes += remarks
    if planned is None:
        return _nothing(problem, bound, settings, notes)
    parts = _parts(view, planned, kind)
    broken = _broken(problem, parts)
    if broken:
        return _nothing(problem, bound, settings, (*notes, broken))
    value = pipeline_value(problem, parts)
    return Outcome(
        problem,
        parts,
        value,
        min(bound, value),
        settings.ended(bound, value),
        notes=notes,
        statistics={"predicted": planned.time, "states": planned.states},
    )


def _kind(problem: PipelineProblem) -> tuple[int, tuple[str, ...]]:
    """Return the first kind that pays for transfers, else the first one; and a note if there are others."""
    present = np.flatnonzero(problem.count > 0)
    kind = int(present[np.argmax(problem.pays[present])])
    refused = np.flatnonzero(~problem.allowed[kind, problem.member])
    if len(refused):
        where = f"node {refused[0]} in the order of the graph, counted from 0"
        raise OptionError(f"method pipedream plans for one kind of device, which may not run {where}")
    return kind, (OTHER_KINDS,) * (len(present) > 1)


def _planned(view: View, settings: Settings, straight: bool) -> tuple[PipeDreamPlan | None, tuple[str, ...]]:
    """Return the planner's plan and notes; if there is none, over all cuts, then with idle machines."""
    most = MOST_STATES if len(view.levels) == 1 else MOST_ON_LEVELS
    asked: dict[str, Any] = {"straight": straight, "max_states": most, "look": partial(_look, settings)}
    notes: list[str] = []
    while True:
        try:
            return plan(view.layers, view.levels, **asked), tuple(notes)
        except Stopped:
            return None, (LATE,)
        except NoPlanFound:
            return None, (TOO_MANY.format(most),)
        except WorkloadError:
            asked["states"] = "ideals"
            notes.append(ALL_CUTS)
        except InfeasibleError:
            if "fewer_machines" in asked:
                return None, (NO_PIPELINE,)
            asked["fewer_machines"] = True
            notes.append(IDLE)


def _look(settings: Settings) -> None:
    """Raise :class:`Stopped` if the run should end."""
    if settings.expired:
        raise Stopped


def _parts(view: View, planned: PipeDreamPlan, kind: int) -> list[Part]:
    return [
        Part(
            kind,
            np.sort(view.supernode[list(stage.layers)]),
            stage.machines,
            devices_of(stage, view.levels),
        )
        for stage in planned.stages
        if stage.layers
    ]


def _broken(problem: PipelineProblem, parts: list[Part]) -> str:
    """Return a note on the limit that the plan breaks; empty if it breaks none."""
    most = max(part.replicas for part in parts)
    if most > problem.copies[parts[0].kind]:
        return f"PipeDream's plan has a stage on {most} devices, more than the replicas allowed"
    need, memory = max(_memory(problem, part) for part in parts), problem.memory[parts[0].kind]
    if need > memory:
        return f"PipeDream's plan puts {need:g} on a device with a memory of {memory:g}"
    return ""


def _memory(problem: PipelineProblem, part: Part) -> float:
    """Return the memory of a part that does not depend on a schedule."""
    divided = problem.pipeline.divided
    shared = divided[part.nodes].sum() / part.replicas if len(divided) else 0.0
    return float(problem.size[part.nodes].sum() + shared)


def _nothing(problem: PipelineProblem, bound: float, settings: Settings, notes: tuple[str, ...]) -> Outcome:
    return Outcome(problem, None, np.inf, bound, settings.stop_reason, notes=notes)
