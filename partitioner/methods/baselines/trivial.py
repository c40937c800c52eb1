"""The baselines that every other method must beat: everything on one device, and a split drawn at random."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.loads import value_of
from partitioner.methods.local_search.rounds import PartLayout
from partitioner.methods.method import Outcome, Part, Settings, no_split
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PartsProblem


def solve_single(problem: Problem, settings: Settings) -> Outcome:
    """Find the best device that can hold and run the whole graph: method ``single_device``."""
    bound = relax(problem).bound
    everything = np.arange(problem.n)
    fits = (problem.count > 0) & problem.allowed.all(axis=1) & (problem.size.sum() <= problem.memory)
    choices = [[Part(int(kind), everything)] for kind in np.flatnonzero(fits)]
    parts = min(choices, key=lambda parts: value_of(problem, parts), default=None)
    value = np.inf if parts is None else value_of(problem, parts)
    stop = "optimal" if value <= bound * (1 + 1e-12) else "heuristic"
    return Outcome(problem, parts, value, min(bound, value), stop, infeasible=np.isinf(bound))


DRAWS = 1000  # until a split fits; where memory is scarce few do


def solve_random(problem: Problem, settings: Settings) -> Outcome:
    """Draw splits by the seed until one fits: method ``random``.

    Chains are cuts of the topological order at random places, for devices in a random order; other splits are
    those that :class:`partitioner.methods.local_search.rounds.PartLayout` draws.
    """
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    rng = np.random.default_rng(settings.seed)
    for draw in range(DRAWS):
        parts = _parts(problem, rng) if isinstance(problem, PartsProblem) else _stages(problem, rng)
        if all(_fits(problem, part) for part in parts):
            value = value_of(problem, parts)
            return Outcome(problem, parts, value, min(bound, value), settings.ended(bound, value))
        if settings.expired:
            break
        settings.report_progress("random splits", draw, DRAWS, np.inf, bound)
    return Outcome(problem, None, np.inf, bound, settings.stop_reason)


def _parts(problem: PartsProblem, rng: np.random.Generator) -> list[Part]:
    layout = PartLayout(problem)
    return _of_owners(layout.random_place(rng), layout.kind)


def _stages(problem: Problem, rng: np.random.Generator) -> list[Part]:
    kinds = rng.permutation(np.repeat(np.arange(len(problem.count)), np.minimum(problem.count, problem.n)))
    most = int(rng.integers(1, min(len(kinds), problem.n) + 1))
    cuts = np.sort(rng.choice(np.arange(1, problem.n), most - 1, replace=False))
    return _of_owners(np.searchsorted(cuts, np.arange(problem.n), side="right"), kinds)


def _of_owners(owner: Ints, kinds: Ints) -> list[Part]:
    """Return a part for each device that has supernodes; `kinds` are those of the devices."""
    return [Part(int(kinds[i]), np.flatnonzero(owner == i)) for i in np.unique(owner).tolist()]


def _fits(problem: Problem, part: Part) -> bool:
    size = problem.size[part.nodes].sum()
    return bool(problem.allowed[part.kind, part.nodes].all() and size <= problem.memory[part.kind])
