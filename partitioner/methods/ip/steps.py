"""Local search and covering bound in turn, limited by moves and steps: the same run on every machine."""

from __future__ import annotations

from collections.abc import Callable

from partitioner.methods.bounds.cover.bound import Covering
from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.ip.descent import PROGRESS
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.local_search.layouts import PartLayout
from partitioner.methods.local_search.rounds import SHIFTS_PER_NODE, LocalSearch

STEPS = 40  # of the covering bound in a turn
ROUNDS = 2  # of annealing in a turn, of the length of the first ones
PATIENCE = 3  # turns without progress before the end


def tighten_in_turns(search: SplitSearch, relaxation: Relaxation) -> None:
    """Improve parts and bound in turn until they meet, or neither has improved for some turns."""
    problem = search.problem
    covering = Covering(problem, relaxation)
    annealing = LocalSearch(PartLayout(problem), search.settings.seed)
    if search.best is not None:
        annealing.offer(search.best)
    idle = 0
    while not search.over and idle < PATIENCE:
        value, bound = search.value, search.bound
        annealing.run(_goes_on(search, annealing), annealing.shifts + ROUNDS * SHIFTS_PER_NODE * problem.n)
        if annealing.parts is not None and annealing.value < search.value:
            search.offer(annealing.parts)
        covering.rise(search.value, search.settings.gap, _counted(search), search.raise_bound)
        moved = search.value < value * (1 - PROGRESS) or search.bound > bound * (1 + PROGRESS)
        idle = 0 if moved else idle + 1


def _goes_on(search: SplitSearch, annealing: LocalSearch) -> Callable[[], bool]:
    floor = search.bound / (1 - search.gap)
    return lambda: not search.settings.expired and min(search.value, annealing.value) > floor


def _counted(search: SplitSearch) -> Callable[[], bool]:
    left = STEPS

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0 or search.over

    return stop
