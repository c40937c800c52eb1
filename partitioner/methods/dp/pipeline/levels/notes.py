"""Notes for the user on bounds of the search over levels."""

from __future__ import annotations

from dataclasses import replace

from partitioner.methods.method import ANY_DEVICES, Outcome, meets
from partitioner.problem.variants import PipelineProblem

EQUAL_LINKS = "the lower bound assumes that all links are as fast as inside the smallest groups of devices"
OVER_LEVELS = "the lower bound is the largest value that the search over levels of devices refuted"


def gap_notes(problem: PipelineProblem, value: float, bound: float, equal: float) -> tuple[str, ...]:
    """Return a note on the bound if it leaves a gap and devices are in levels.

    Parameters
    ----------
    problem, value, bound
        The problem, the value of its best pipeline and the bound.
    equal
        The bound on equal links, from before the search over levels.
    """
    if not len(problem.pipeline.slowdown) or meets(bound, value):
        return ()
    return (OVER_LEVELS if bound > equal else EQUAL_LINKS,)


def among(outcome: Outcome) -> Outcome:
    """Return the outcome, with a note on the pipelines for which its bound holds if these are not all.

    In the search over levels a pipeline visits the groups of devices one after the other. The optimum on
    equal links, which is among the statistics, bounds plans on any devices.
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
