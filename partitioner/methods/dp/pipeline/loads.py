"""What pipelines cost on the contracted problem (paper, Section 5.1 and Appendix H.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.pipeline.levels.loads import work_over_levels
from partitioner.methods.loads import part_loads
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.problem import Problem


def pipeline_of(problem: Problem) -> Pipeline:
    """Return what the extended model needs of the problem, which has it."""
    assert problem.pipeline is not None
    return problem.pipeline


def pipeline_value(problem: Problem, stages: Sequence[Part]) -> float:
    """Return the objective of stages that together hold every supernode; infinity if one may not run there.

    ``"throughput"``: the largest load; ``"batch"``: the sum of the loads, and the largest one once more
    for each sample after the first. Memory and limits are not looked at.
    """
    loads = stage_loads(problem, stages)
    largest = float(loads.max(initial=0.0))
    if problem.measure is not Measure.BATCH:
        return largest
    return float(loads.sum()) + (samples(problem) - 1) * largest


def stage_loads(problem: Problem, stages: Sequence[Part]) -> Floats:
    """Return the average time that each stage spends on a sample, shape (stages,)."""
    if not stages:
        return np.zeros(0)
    pipeline = pipeline_of(problem)
    copies = np.array([part.replicas for part in stages])
    kind = np.array([part.kind for part in stages], dtype=np.int64)
    weights = np.array([pipeline.weights[part.nodes].sum() for part in stages])
    exchange = (copies - 1) * weights / (copies * pipeline.bandwidth[kind])
    if len(pipeline.slowdown):
        work, slow = work_over_levels(problem, stages)
        work, exchange = work / copies, exchange * slow
    else:
        work = part_loads(problem, stages)[0] / copies
    return np.asarray(work + exchange if pipeline.added else np.maximum(work, exchange))


def samples(problem: Problem) -> int:
    """Return how many samples fill the pipeline at a time."""
    return pipeline_of(problem).microbatches or 1


def least_work(problem: Problem) -> Floats:
    """Return what each supernode adds at least to the sum of all loads, shape (n,)."""
    shares = problem.work() / problem.copies[:, None]
    return np.asarray(shares[problem.count > 0].min(axis=0))


def least_value(problem: Problem, relaxation: Relaxation) -> float:
    """Return what no pipeline goes below: its largest load is at least the relaxation's bound.

    It holds for the user's graph too, where nodes were merged at the risk of losing the optimum.
    """
    if problem.measure is not Measure.BATCH:
        return relaxation.bound
    total = max(relaxation.bound, float(least_work(problem.relaxed()).sum()))
    return total + (samples(problem) - 1) * relaxation.bound


def largest_copies(problem: Problem) -> Ints:
    """Return the most devices that may share a stage, shape (K,)."""
    return np.where(problem.count > 0, problem.copies, 0)
