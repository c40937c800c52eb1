"""Pipelines whose stages all have the same number of devices, as runtimes with one mesh of devices need them.

They are the pipelines of several problems, in each of which every stage has exactly r devices, r = 1, 2, ...:

    best = min over r of best(r),   bound = min over r of bound(r)

Each problem is solved by the method itself, those of small bounds first; a problem whose bound is not below
the best value is left out. Four nodes take 1, 1, 2 and 4, and there are four devices: r = 1 is bounded by the
node of 4, r = 2 has the stages {1, 1, 2} and {4} of 2 each, and r = 4 one stage of 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np

from partitioner.methods.dp.forms import Form, Piped
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.variants import PipelineProblem


def asks_for_equal(problem: PipelineProblem) -> bool:
    """Whether all stages must have the same number of devices, and there is more than one such number."""
    return problem.limits.equal and problem.pipeline.fewest < int(problem.copies.max())


def numbers_of(problem: PipelineProblem) -> Iterable[int | None]:
    """Return the numbers of devices that all stages may have; None alone if they need not be equal."""
    return range(1, int(problem.copies.max()) + 1) if asks_for_equal(problem) else (None,)


@dataclass(frozen=True)
class EqualReplicas(Generic[Piped]):
    """A method for pipelines whose stages have equal numbers of devices.

    Parameters
    ----------
    solve
        The method for a problem in which the number is given; it takes an incumbent of any number.
    bound
        A lower bound on the values of a problem that takes no search.
    """

    solve: Callable[[Piped, Settings], Outcome]
    bound: Callable[[Piped], float]

    def best(self, problem: Piped, choices: Iterable[Piped], settings: Settings) -> Outcome:
        """Return the best outcome over problems that differ from the given one by what a stage must have.

        Its bound holds for all of them.
        """
        lows = [(self.bound(choice), choice) for choice in choices]
        lows = sorted((each for each in lows if np.isfinite(each[0])), key=lambda each: each[0])
        best, weakest, bound, steps = no_split(problem), no_split(problem), np.inf, 0.0
        wide, narrower = np.inf, False
        for number, (low, choice) in enumerate(lows):
            if meets(low, best.value, settings.gap):
                bound, wide = min(bound, low), min(wide, low)
                continue
            start = best.refined(problem)
            found = Form(problem, choice).outcome(
                self.solve(choice, _share(settings, start, len(lows) - number))
            )
            steps += found.statistics.get("steps", 0)
            bound = min(bound, max(low, found.bound))
            wide = min(wide, max(low, found.bound_on_any_devices))
            narrower |= ANY_DEVICES in found.statistics
            weakest = min(weakest, found, key=lambda outcome: outcome.bound)
            best = min(best, found, key=lambda outcome: outcome.value)
        if np.isinf(bound):
            return no_split(problem)
        bound = min(bound, best.value)
        figures = {**best.statistics, "steps": steps, "numbers_of_replicas": len(lows)}
        notes = () if meets(bound, best.value, settings.gap) else weakest.notes
        return replace(
            best,
            infeasible=False,
            bound=bound,
            stop_reason=settings.ended(bound, best.value),
            notes=tuple(dict.fromkeys((*best.notes, *notes))),
            statistics=figures | ({ANY_DEVICES: min(wide, best.value)} if narrower else {}),
        )


def _share(settings: Settings, start: Sequence[Part] | None, left: int) -> Settings:
    """Return the settings for the next of `left` problems: a part of the time, and the best stages so far."""
    if start is not None:
        settings = replace(settings, incumbent=start)
    seconds = settings.seconds_left
    return settings if seconds is None else settings.within(seconds / left)
