"""The arguments of PipeDream's planner, made from a contracted problem: layers and levels of machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.request import MachineLevel
from partitioner.methods.baselines.pipedream.result import Stage
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
