"""What to say of a bound that the search over levels could not close."""

from __future__ import annotations

from dataclasses import replace

from partitioner.methods.dp.pipeline.loads import pipeline_of
from partitioner.methods.method import ANY_DEVICES, Outcome, meets
from partitioner.problem.problem import Problem

EQUAL_LINKS = "the bound is one for links that are all as fast as inside the smallest groups of devices"
OVER_LEVELS = "the bound is the largest value that the search over levels of devices refuted"


def gap_notes(problem: Problem, value: float, bound: float, equal: float) -> tuple[str, ...]:
    """Return what the bound means if it leaves a gap and devices are in levels.

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


def among(outcome: Outcome) -> Outcome:
    """Return the outcome with a note on the pipelines that its bound is proven for, if not for all.

    The search over levels visits the groups of devices one after the other. The optimum on equal links
    bounds plans on any devices; it is among the statistics.
    """
    wide = outcome.statistics.get(ANY_DEVICES)
    if wide is None or meets(wide, outcome.bound):
        return outcome
    proof = "optimal" if outcome.stop_reason == "optimal" else "the lower bound holds"
    note = (
        f"{proof} among pipelines that visit the groups of devices one after the other, each stage inside a "
        "group or on all devices of its kind in whole groups, whose other devices stay idle then; for any "
        f"other choice of devices the lower bound is {wide:.6g}"
    )
    return replace(outcome, notes=(*outcome.notes, note))
