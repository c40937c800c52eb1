"""The search for the best stages on a given number of devices."""

from __future__ import annotations

import numpy as np

from partitioner.methods.method import Settings, meets
from partitioner.methods.virtual_stages.borders import even_borders, improved, shaken
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.methods.virtual_stages.pairs import PairSearch
from partitioner.methods.virtual_stages.rounds import best_rounds, least_mean
from partitioner.problem.arrays import Floats, Ints

STEPS = (
    1.0005,
    1.003,
    1.01,
    1.03,
    1.06,
    1.1,
    1.15,
    1.2,
    1.3,
    1.4,
    1.5,
    1.75,
    2.0,
)  # limits tried in turn, times the bound
WIDTH = 4000
WIDEST = 30_000
SHAKES = 60
POLISHED = 5
MOST_SUMS = 4_000_000
MOST_EXACT = 300  # plans of least bounds whose loads are computed


class Best:
    """The best plan so far, of all numbers of devices, and the least bound of these."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.value, self.bound = np.inf, np.inf
        self.model: VirtualModel | None = None
        self.borders: Ints | None = None
        self.plans = 0

    def offer(self, model: VirtualModel, borders: Ints | None) -> float:
        """Keep stages if they are the best so far and obey all rules; return their largest load."""
        if borders is None or not model.feasible(borders):
            return np.inf
        self.plans += 1
        value = float(model.loads(borders).max())
        if value < self.value:
            self.value, self.model, self.borders = value, model, borders
            self.settings.report_progress("stages", 0, 0, value, 0.0)
        return value

    def closed(self, bound: float) -> bool:
        """Whether no plan above a bound is better than the best by more than the gap."""
        return meets(bound, self.value, self.settings.gap)


def search(model: VirtualModel, best: Best) -> None:
    """Improve the best plan by plans of one number of devices, and its bound by theirs."""
    bound = _first_bound(model)
    if not best.closed(bound) and np.isfinite(bound):
        _start(model, best)
        if not best.closed(bound):
            bound = _by_pairs(model, best, bound) if model.chunks == 2 else _by_loads(model, best, bound)
        if not best.closed(bound) and not model.adds_up and model.chunks != 2:
            bound = _completely(model, best, bound)
    if not model.costs.cuts.complete:
        bound = min(bound, float(model.costs.busy[0, -1]) / model.devices)
    best.bound = min(best.bound, bound)


def _first_bound(model: VirtualModel) -> float:
    """Return a lower bound: the mean load, or the least sum of stages' loads that is not below it."""
    mean = least_mean(model)
    if model.schedule.vee or len(model.low) > 1 or not np.isfinite(mean):
        return mean
    loads = np.unique(model.low[np.isfinite(model.low)])
    return max(mean, _least_sum(loads, model.chunks, mean * (1 - 1e-12)))


def _least_sum(loads: Floats, terms: int, least: float) -> float:
    """Return the least sum of a number of loads that is at least `least`; -inf if that takes too long.

    Examples
    --------
    >>> _least_sum(np.array([2.0, 5.0]), 2, 5.0)
    7.0
    """
    if len(loads) ** (terms - 1) > MOST_SUMS:
        return -np.inf
    sums = np.zeros(1)
    for _ in range(terms - 1):
        sums = np.unique(sums[:, None] + loads)
    place = np.searchsorted(loads, least - sums)
    sums, place = sums[place < len(loads)], place[place < len(loads)]
    return float((sums + loads[place]).min(initial=np.inf))


def _start(model: VirtualModel, best: Best) -> None:
    """Offer stages of even work, and of even memory, after moves of their borders."""
    problem = model.costs.problem
    weights = problem.work()[model.costs.kind], problem.pipeline.activations, np.ones(problem.n)
    for weight in weights:
        borders = even_borders(model, weight)
        if borders is not None and not best.settings.expired:
            best.offer(model, borders)
            best.offer(model, improved(model, borders, best.settings))


def _by_pairs(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound of the program over pairs of cuts, with limits that grow."""
    for step in (*STEPS, np.inf):
        limit = min(best.value, bound * step, _most(model))
        found = PairSearch(model, limit, best.settings).run()
        best.offer(model, found.borders)
        if not found.complete:
            _polish(model, best, [] if found.borders is None else [found.borders])
            return bound
        bound = max(bound, min(found.bound, best.value))
        if found.borders is not None:
            return bound
        if limit >= min(best.value, _most(model)):
            return bound if np.isfinite(best.value) else np.inf
    return bound


def _most(model: VirtualModel) -> float:
    """Return a limit above all loads."""
    alone = model.costs.alone
    return 1.0 + model.chunks * float(alone[np.isfinite(alone)].max(initial=0.0))


def _by_loads(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound of the search stage by stage, with limits that grow until it is cut short."""
    for step in (*STEPS, np.inf):
        limit = min(best.value, bound * step, _most(model))
        found = best_rounds(model, limit, WIDTH, True, best.settings)
        for one in found[:MOST_EXACT]:
            best.offer(model, one.borders)
        if not found[0].complete:
            _polish(model, best, [one.borders for one in found[:POLISHED] if one.borders is not None])
            return bound
        bound = max(bound, min(found[0].bound, best.value))
        if found[0].borders is not None:
            return bound
        if limit >= min(best.value, _most(model)):
            return bound if np.isfinite(best.value) else np.inf
    return bound


def _polish(model: VirtualModel, best: Best, plans: list[Ints]) -> None:
    """Offer plans after moves of their borders, and the best one after random moves and further ones."""
    for borders in plans:
        best.offer(model, improved(model, borders, best.settings))
    rng = np.random.default_rng(best.settings.seed)
    for _ in range(SHAKES):
        if best.settings.expired or best.model is not model or best.borders is None:
            return
        best.offer(model, improved(model, shaken(model, best.borders, rng), best.settings))


def _completely(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound after a search of all plans that may be better, if they are not too many."""
    found = best_rounds(model, min(best.value, _most(model)), WIDEST, False, best.settings)
    if not found[0].complete:
        return bound
    value = np.inf
    for one in found:
        if best.settings.expired:
            return bound
        value = min(value, best.offer(model, one.borders))
    return max(bound, min(value, best.value))
