"""The lower bound where a tensor may pass over stages, so that tables give no exact values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.pipeline.groups.tables import LowerGroupTables
from partitioner.methods.dp.pipeline.loads import pipeline_value
from partitioner.methods.dp.pipeline.sparse.tables import LowerSparseTables, can_do_without
from partitioner.methods.method import Part
from partitioner.problem.measure import Measure
from partitioner.problem.variants import PipelineProblem

Known = tuple[Sequence[Part] | None, float, float]


def bracket_below(
    linear: LinearSearch[PipelineProblem], lattice: Lattice, stages: Sequence[Part] | None, value: float
) -> Known:
    """Return the best pipeline known, its value, and a lower bound on all pipelines of the lattice.

    For a batch the bound is that of the fastest links.

    Parameters
    ----------
    linear, lattice
        The problem with its bound, and the lattice of its ideals.
    stages, value
        The best pipeline so far.
    """
    problem = linear.problem
    if problem.measure is Measure.BATCH:
        return stages, value, linear.bound
    lower = LowerSparseTables if can_do_without(problem) else LowerGroupTables
    tables = lower(problem.relaxed(), linear.relaxation, lattice)
    below = linear.model.bracket(tables, linear.settings, linear.bound, value)
    below.narrow(from_top=np.isfinite(value))
    if below.stages is not None and problem.lossless:
        found = pipeline_value(problem, below.stages)
        if found < value:
            stages, value = below.stages, found
    return stages, value, min(below.bound, value)
