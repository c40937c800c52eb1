"""A contracted problem as PipeDream's planner sees it: layers, levels of machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.request import MachineLevel
from partitioner.methods.baselines.pipedream.result import Stage
from partitioner.methods.dp.pipeline.loads import pipeline_of
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem


class View(NamedTuple):
    """What the planner is given.

    Parameters
    ----------
    layers
        A supernode each, in the order of their first nodes in the user's graph.
    supernode
        Shape (n,): the supernode of each layer.
    levels
        The innermost first.
    """

    layers: Layers
    supernode: Ints
    levels: list[MachineLevel]


def view_of(problem: Problem, kind: int) -> View:
    """Return what the planner sees of a problem whose supernodes all run on one kind of device.

    Time is that of both passes, an activation is what the tensors cost that leave a supernode forward,
    times the bandwidth; so a result of the network has none, which the planner counts at cuts behind it.
    Without a bandwidth weights cost nothing, and cost and bytes are one.
    """
    bandwidth = float(pipeline_of(problem).bandwidth[kind])
    linked = math.isfinite(bandwidth)
    time_factor = bandwidth if linked else 1.0
    supernode = np.argsort(_first_nodes(problem))
    layer = np.argsort(supernode)
    arcs = np.stack((problem.successors.owners(), problem.successors.items), axis=1)
    layers = Layers(
        time=problem.time[kind].sum(axis=0)[supernode],
        activation=(problem.output * (problem.transfer_factor[kind] * time_factor))[supernode],
        parameters=pipeline_of(problem).weights[supernode] * linked,
        edges=layer[arcs],
    )
    return View(layers, supernode, levels_of(problem, kind, time_factor))


def levels_of(problem: Problem, kind: int, bandwidth: float) -> list[MachineLevel]:
    """Return the machines of each level and the bandwidth between them, given that of the fastest links."""
    pipeline = pipeline_of(problem)
    sizes = [1, *pipeline.group[:, kind].tolist(), int(problem.count[kind])]
    paces = [1.0, *pipeline.slowdown.tolist()]
    machines = [outer // inner for inner, outer in pairwise(sizes)]
    return [MachineLevel(m, bandwidth / slow) for m, slow in zip(machines, paces, strict=True)]


def devices_of(stage: Stage, levels: Sequence[MachineLevel]) -> tuple[int, ...]:
    """Return the numbers of a stage's devices, group by group: replicas over groups and inside each.

    Examples
    --------
    >>> twice = Stage(layers=(0,), first=(1, 0), replicas=(2, 2))
    >>> devices_of(twice, [Level(4, 8.0), Level(2, 1.0)])
    (1, 2, 5, 6)
    """
    numbers, size = np.zeros(1, dtype=np.int64), 1
    for level, first, replicas in zip(levels, stage.first, stage.replicas, strict=True):
        groups = size * np.arange(first, first + replicas)
        numbers, size = (groups[:, None] + numbers).ravel(), size * level.machines
    return tuple(numbers.tolist())


def _first_nodes(problem: Problem) -> Ints:
    """Return the first node of each supernode, shape (n,)."""
    return np.unique(problem.member, return_index=True)[1].astype(np.int64)
