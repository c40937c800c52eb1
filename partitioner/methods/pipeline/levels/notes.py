"""What to say of a bound that the search over levels could not close."""

from __future__ import annotations

from partitioner.methods.method import meets
from partitioner.methods.pipeline.loads import pipeline_of
from partitioner.preprocess.problem import Problem

EQUAL_LINKS = "the bound is one for links that are all as fast as inside the smallest groups of devices"
OVER_LEVELS = "the bound is the largest value that the search over levels of devices refuted"


def gap_notes(problem: Problem, value: float, bound: float, equal: float) -> tuple[str, ...]:
    """What the bound means if it leaves a gap and devices are in levels.

    Parameters
    ----------
    problem, value, bound
        The problem, the value of its best pipeline and the bound.
    equal
        The bound that was known before levels were looked at.
    """
    if not len(pipeline_of(problem).slowdown) or meets(bound, value):
        return ()
    return (OVER_LEVELS if bound > equal else EQUAL_LINKS,)
