"""The loads and the objective of pipelines on the contracted problem (paper, Section 5.1, Appendix H.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.pipeline.links import work_over_links
from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem


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


def stage_loads(problem: PipelineProblem, stages: Sequence[Part]) -> Floats:
    """Return the mean time that each stage spends on a sample, shape (stages,)."""
    if not stages:
        return np.zeros(0)
    pipeline = problem.pipeline
    copies = np.array([part.replicas for part in stages])
    kind = np.array([part.kind for part in stages], dtype=np.int64)
    weights = np.array([pipeline.weights[part.nodes].sum() for part in stages])
    exchange = (copies - 1) * weights / (copies * pipeline.bandwidth[kind])
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
    total = max(relaxation.bound, float(least_work(problem.relaxed()).sum()))
    return total + (samples(problem) - 1) * relaxation.bound


def largest_copies(problem: Problem) -> Ints:
    """Return the largest number of devices that may share a stage, shape (K,)."""
    return np.where(problem.count > 0, problem.copies, 0)
