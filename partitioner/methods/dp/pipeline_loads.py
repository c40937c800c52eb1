"""The loads and the objective of pipelines on the contracted problem (paper, Section 5.1, Appendix H.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.loads import joint_loads, part_loads, part_numbers
from partitioner.methods.method import Part
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.problem import Problem
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


def pipeline_value(problem: PipelineProblem, stages: Sequence[Part]) -> float:
    """Return the objective of stages that together hold every supernode; infinity if one may not run there.

    That is the largest load; or for a batch the sum of the loads, plus the largest one for each sample after
    the first. Memory and limits are not checked.
    """
    loads = stage_loads(problem, stages)
    largest = float(loads.max(initial=0.0))
    if problem.measure is not Measure.BATCH:
        return largest
    return float(loads.sum()) + (samples(problem) - 1) * largest


def best_of(problem: PipelineProblem, *known: Sequence[Part] | None) -> Sequence[Part] | None:
    """Return the pipeline of least value among those that are known; None if none is."""
    found = [stages for stages in known if stages is not None]
    return min(found, key=lambda stages: pipeline_value(problem, stages), default=None)


def stage_loads(problem: PipelineProblem, stages: Sequence[Part]) -> Floats:
    """Return the mean time that each stage spends on a sample, shape (stages,)."""
    if not stages:
        return np.zeros(0)
    pipeline = problem.pipeline
    copies = np.array([part.replicas for part in stages])
    kind = np.array([part.kind for part in stages], dtype=np.int64)
    weights = np.array([pipeline.weights[part.nodes].sum() for part in stages])
    sent = weights + copies * pipeline.message[kind] * (weights > 0)
    exchange = (copies - 1) * sent / (copies * pipeline.bandwidth[kind])
    if len(pipeline.slowdown) or len(pipeline.link):
        work, slow = work_over_links(problem, stages)
        work, exchange = work / copies, exchange * slow
    else:
        work = part_loads(problem, stages)[0] / copies
    return np.asarray(work + exchange if pipeline.added else np.maximum(work, exchange))


def samples(problem: PipelineProblem) -> int:
    """Return the number of samples in a batch, 1 if none is given."""
    return problem.pipeline.microbatches or 1


def least_work(problem: PipelineProblem) -> Floats:
    """Return the least that each supernode adds to the sum of all loads, shape (n,)."""
    shares = problem.work() / problem.copies[:, None]
    return np.asarray(shares[problem.count > 0].min(axis=0))


def least_value(problem: PipelineProblem, relaxation: Relaxation) -> float:
    """Return a lower bound on every pipeline's value, whose largest load is at least the relaxation's bound.

    It also holds for the user's graph if nodes were merged at the risk of losing the optimum.
    """
    if problem.measure is not Measure.BATCH:
        return relaxation.bound
    total = max(relaxation.bound, float(least_work(problem.relaxed).sum()))
    return total + (samples(problem) - 1) * relaxation.bound


def largest_copies(problem: Problem) -> Ints:
    """Return the largest number of devices that may share a stage, shape (K,)."""
    return np.where(problem.count > 0, problem.copies, 0)
