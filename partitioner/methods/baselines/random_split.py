"""The baseline that every other method must beat: a split drawn at random."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part, Settings, no_split
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem

DRAWS = 1000  # until a split fits; where memory is scarce few do


def solve_random(problem: Problem, settings: Settings) -> Outcome:
    """Draw splits by the seed until one fits: method ``random``.

    Chains and convex splits are cuts of the topological order at random places, for devices in a random
    order; in free splits every supernode has a device of its own, drawn among all of them.
    """
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    rng = np.random.default_rng(settings.seed)
    devices = np.repeat(np.arange(len(problem.count)), np.minimum(problem.count, problem.n))
    for draw in range(DRAWS):
        parts = _drawn(problem, rng.permutation(devices), rng)
        if all(_fits(problem, part) for part in parts):
            value = value_of(problem, parts)
            return Outcome(problem, parts, value, min(bound, value), settings.ended(bound, value))
        if settings.expired:
            break
        settings.report_progress("random splits", draw, DRAWS, np.inf, bound)
    return Outcome(problem, None, np.inf, bound, settings.stop_reason)


def _drawn(problem: Problem, kinds: Ints, rng: np.random.Generator) -> list[Part]:
    """Return one part for each device that gets a supernode; `kinds` are those of the devices."""
    if problem.split == "free":
        owner = rng.integers(len(kinds), size=problem.n)
    else:
        most = int(rng.integers(1, min(len(kinds), problem.n) + 1))
        cuts = rng.choice(np.arange(1, problem.n), most - 1, replace=False)
        owner = np.searchsorted(np.sort(cuts), np.arange(problem.n), side="right")
    return [Part(int(kinds[i]), np.flatnonzero(owner == i)) for i in np.unique(owner).tolist()]


def _fits(problem: Problem, part: Part) -> bool:
    size = problem.size[part.nodes].sum()
    return bool(problem.allowed[part.kind, part.nodes].all() and size <= problem.memory[part.kind])
