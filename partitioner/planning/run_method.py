"""The run of a method, which ends by the time limit or by request, with the best plan so far."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from partitioner.base.clock import METER, Clock
from partitioner.base.interruption import CompilationStopped
from partitioner.methods.info import MethodInfo
from partitioner.methods.method import COMPILING, Outcome, Progress, Settings
from partitioner.planning.first_plan import FirstPlan
from partitioner.problem.problem import Problem

OUT_OF_MEMORY = "out_of_memory"
ENDED_EARLY = ("time_limit", "interrupted", OUT_OF_MEMORY)
OVER_FIRST = 2.5  # what evaluating the method's plan takes at most, over the time for the first plan
NO_MEMORY = "the process ran out of memory: a smaller memory_budget lets the search end in time"
SPARE = 0.6  # seconds by which a run may exceed its limit for that


def run_method(
    info: MethodInfo, problem: Problem, settings: Settings, first: Callable[[], FirstPlan | None]
) -> tuple[Outcome, FirstPlan | None]:
    """Return the outcome of the method, or the first plan if the run was ended before there was a better one.

    The first plan comes in addition, if it was made.

    Parameters
    ----------
    info, problem, settings
        The method and what it is given.
    first
        Makes the first plan. It is called before the method if there is a limit of time, and else only if
        it is needed.
    """
    listener = settings.report
    settings = settings if listener is None else replace(settings, report=BestSoFar(listener))
    with settings.interruption, METER.watched(settings.on_compile):
        known = first() if settings.deadline is not None or settings.expired else None
        if known is not None:
            settings.report_progress("first plan", 0, 0, known.outcome.value, 0.0)
            settings = _with_time_to_evaluate(settings, known.seconds)
        outcome = _run(info, problem, settings, dispensable=known is not None)
    if outcome.infeasible or outcome.stop_reason not in ENDED_EARLY:
        return outcome, known
    known = first()
    if known is None or outcome.value <= known.outcome.value:
        return outcome, known
    return known.in_place_of(outcome), known


def _with_time_to_evaluate(settings: Settings, seconds: float) -> Settings:
    """Return the settings, with an earlier deadline if evaluating the first plan took long."""
    clock, needed = settings.clock, OVER_FIRST * seconds - SPARE
    return replace(settings, clock=replace(clock, limit=clock.limit - needed)) if needed > 0 else settings


def _run(info: MethodInfo, problem: Problem, settings: Settings, dispensable: bool) -> Outcome:
    """Run the method; one that is dispensable is not even loaded once the run should end."""
    try:
        method = None if dispensable and settings.expired else info.load_for(problem)
        if method is not None and not (dispensable and settings.expired):
            return method(problem, settings)
    except CompilationStopped:
        pass
    except MemoryError:
        return Outcome(problem, None, np.inf, 0.0, OUT_OF_MEMORY, notes=(NO_MEMORY,))
    return Outcome(problem, None, np.inf, 0.0, settings.stop_reason)


class BestSoFar:
    """A progress callback that passes reports on with the smallest value reported so far."""

    def __init__(self, listener: Callable[[Progress], None]) -> None:
        self.listener, self.value, self.bound = listener, math.inf, 0.0

    def __call__(self, progress: Progress) -> None:
        """Pass a report on; reports of compiling have no value of their own."""
        self.value = min(self.value, progress.value)
        self.bound = self.bound if progress.phase == COMPILING else progress.bound
        self.listener(replace(progress, value=self.value, bound=self.bound))


def notes_on_kernels(clock: Clock) -> tuple[str, ...]:
    """Return notes on how long kernels were compiled, and on a cache folder that is not the default."""
    compiled = sys.modules.get("partitioner.base.compiled")  # loaded only with a method that has kernels
    where = "" if compiled is None else compiled.cache_note()
    if not clock.compiled:
        return (where,) if where else ()
    spent = f"compiled kernels for {clock.compiled:.1f} s"
    spent += "" if clock.deadline is None else ", which the time limit does not count"
    return (f"{spent}; {where or 'they are kept for later runs on this machine'}",)
