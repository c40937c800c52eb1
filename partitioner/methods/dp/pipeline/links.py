"""The loads of stages on devices whose links differ (paper, Appendices H.2 and H.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.communication import joint_loads
from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part, part_numbers
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.variants import PipelineProblem


def work_over_links(problem: PipelineProblem, stages: Sequence[Part]) -> tuple[Floats, Floats]:
    """Return the work of each stage for a sample, and the slowdown of its own links, shape (stages,) each.

    The stages must name their devices and together hold every supernode.
    """
    slow = _slowdowns(problem.pipeline, stages)
    kind = np.array([part.kind for part in stages], dtype=np.int64)
    into, out = _transfers(problem, stages, slow) * problem.transfer_factor[kind]
    silent = replace(problem, nets=problem.nets._replace(cost=np.zeros_like(problem.nets.cost)))
    busy = part_loads(silent, stages)[0]
    return joint_loads(problem.communication, busy, into, out), slow.diagonal()


def _slowdowns(pipeline: Pipeline, stages: Sequence[Part]) -> Floats:
    """Return the slowdown of links between the devices of two stages, shape (stages, stages)."""
    slow = np.ones((len(stages), len(stages)))
    if len(pipeline.link):
        here = _groups(pipeline, stages)
        linked = here[:, None, :, None] & here[None, :, None, :]
        return np.asarray(np.where(linked, pipeline.link, 1.0).max(axis=(2, 3)))
    for level, factor in enumerate(pipeline.slowdown):
        size = [int(pipeline.group[level, part.kind]) for part in stages]
        first = np.array([min(part.devices) // each for part, each in zip(stages, size, strict=True)])
        last = np.array([max(part.devices) // each for part, each in zip(stages, size, strict=True)])
        apart = np.minimum.outer(first, first) < np.maximum.outer(last, last)
        slow[apart] = factor
    return slow


def _groups(pipeline: Pipeline, stages: Sequence[Part]) -> Bools:
    """Return whether each stage has a device in each explicit group, shape (stages, groups).

    A stage that names no devices is on the first ones of its kind.
    """
    found = np.zeros((len(stages), len(pipeline.held)), dtype=bool)
    for i, part in enumerate(stages):
        ends = np.cumsum(pipeline.held[:, part.kind])
        devices = part.devices or range(part.replicas)
        found[i, np.searchsorted(ends, devices, side="right")] = True
    return found


def _transfers(problem: PipelineProblem, stages: Sequence[Part], slow: Floats) -> Floats:
    """Return the cost of the tensors that each stage brings in and sends out, shape (2, stages)."""
    nets, count = problem.nets, len(stages)
    number = part_numbers(stages, problem.n)
    touched: Ints = np.unique(nets.pins.owners() * count + number[nets.pins.items])
    net, place = np.divmod(touched, count)
    maker = number[nets.source[net]]
    net, place, maker = net[place != maker], place[place != maker], maker[place != maker]
    into = np.bincount(place, nets.cost[net] * slow[place, maker], count)
    farthest = np.zeros(len(nets.cost))
    np.maximum.at(farthest, net, slow[maker, place])
    out = np.bincount(number[nets.source], nets.cost * farthest, count)
    return np.stack((into, out))
