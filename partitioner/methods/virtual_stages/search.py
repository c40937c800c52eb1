"""The search for the best stages on a given number of devices.

The search for schedules that go round the devices: stage i on device i mod p.

Plans for the first stages are extended stage by stage. Of plans that end at the same cut and whose devices
have the same loads, so far as further stages will add to them, the best one is kept. All plans are kept below
a limit, so that the search is exact; if they become too many, the most promising ones of each cut are kept.

Without the loads of devices all 16 plans with three or four stages on a device are worse, without moves at
random 12 (scripts/ablations.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from partitioner.methods.method import Settings, meets
from partitioner.methods.virtual_stages.borders import memory_shares
from partitioner.methods.virtual_stages.model import DealtStages, StagesFound, VirtualModel
from partitioner.methods.virtual_stages.moves import even_stages, improved, orders_of, shaken
from partitioner.methods.virtual_stages.pairs import PairSearch
from partitioner.problem.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class StageSearchEffort:
    """How many plans of stages are kept, and how the best are improved.

    Measured at half and at twice each value on gnmt and unet training, two stages on each of four devices:
    values and bounds stay as they are; half the `limits` take 75 % more CPU seconds, twice as large ones 60 %
    less. With three or four stages on a device all plans are worse without the search by loads, and most
    without shakes (scripts/ablations.py).

    Parameters
    ----------
    limits
        The limits tried in turn, as factors of the bound.
    width, widest
        The plans that are kept for each number of stages, and at most.
    products, sums
        Extensions of plans made at once, and sums of loads made at once.
    exact
        Plans of least bounds whose loads are computed.
    polished
        The best plans that are improved by moves of borders.
    shakes
        How often borders are moved at random from a local optimum.
    """

    limits: tuple[float, ...] = (1.0005, 1.003, 1.01, 1.03, 1.06, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)
    width: int = 4000
    widest: int = 30_000
    products: int = 4_000_000
    sums: int = 4_000_000
    exact: int = 300
    polished: int = 5
    shakes: int = 60


EFFORT = StageSearchEffort()


ROUNDING = 1e-12
LEAST = 1e-150  # of sums of loads by whose square others are divided
DIGITS = 11  # of loads that count as equal


@dataclass(frozen=True, eq=False)
class Partial:
    """Plans for the first stages.

    Parameters
    ----------
    borders
        Shape (plans, stages so far + 1): the cuts.
    loads
        Shape (plans, terms, devices): the terms of the loads so far.
    value
        Shape (plans,): the largest load of a device that has all its stages.
    kinds
        Shape (plans, devices): the kinds of devices, -1 where none is chosen.
    """

    borders: Ints
    loads: Floats
    value: Floats
    kinds: Ints

    def kept(self, which: Ints | Bools) -> Partial:
        """Return some of the plans."""
        return Partial(self.borders[which], self.loads[which], self.value[which], self.kinds[which])

    def of_kind(self, model: VirtualModel, rank: int, place: int, first: bool) -> Partial:
        """Return the plans in which a device is of a kind; if it gets its first stage now, may be of it."""
        if not first:
            return self.kept(self.kinds[:, rank] == place)
        kind = model.costs[place].kind
        same = [i for i, costs in enumerate(model.costs) if costs.kind == kind]
        found = self.kept(np.isin(self.kinds, same).sum(axis=1) < model.problem.count[kind])
        found.kinds[:, rank] = place
        return found


def best_rounds(
    model: VirtualModel, limit: float, width: int, merge: bool, settings: Settings
) -> list[StagesFound]:
    """Return stages below a limit, the best by their lower bounds first.

    Parameters
    ----------
    model
        The devices and stages.
    limit
        Only plans whose loads are below it count.
    width
        How many plans are kept for the first stages.
    merge
        Whether of plans with equal loads one is kept, which is exact where loads add up.
    settings
        Says when to stop.

    Returns
    -------
    list of StagesFound
        One for each plan that is left; a single one without stages if there is none.
    """
    terms = len(model.least)
    rest = _least_rest(model)
    unknown = np.full((1, model.devices), -1)
    plans = Partial(
        np.zeros((1, 1), dtype=np.int64), np.zeros((1, terms, model.devices)), np.zeros(1), unknown
    )
    complete = True
    for stage in range(model.stages):
        plans, cut = _extended(model, plans, stage, limit, rest, settings)
        complete = complete and not cut
        if not len(plans.value):
            return [StagesFound(None, limit if complete else 0.0, complete)]
        if merge:
            plans = _merged(model, plans, stage)
        if len(plans.value) > width:
            plans, complete = _promising(plans, width), False
    order = np.argsort(plans.value, kind="stable")
    least = float(plans.value[order[0]]) if complete else 0.0
    return [
        StagesFound(DealtStages(plans.borders[i], plans.kinds[i]), least, complete) for i in order.tolist()
    ]


def _least_rest(model: VirtualModel) -> Floats:
    """Return the least weighted sum of terms over all stages from one on, shape (terms, stages + 1, m)."""
    found = np.full((len(model.least), model.stages + 1, len(model.cuts)), np.inf)
    found[:, -1, -1] = 0.0
    for stage in reversed(range(model.stages)):
        found[:, stage] = (model.least + found[:, stage + 1, None, :]).min(axis=2)
    return found


def least_mean(model: VirtualModel) -> float:
    """Return the least weighted mean load of the devices, over all stages: a bound on the largest load."""
    rest = _least_rest(model)
    if not model.schedule.vee:
        return float(rest[:, 0, 0].max() / model.room(model.devices))
    alone = (model.weight[:, None, None, None] * model.alone).min(axis=0)
    left = (alone + rest[:, model.devices + 1, None, :]).min(axis=2)  # of the last device
    for _ in range(model.devices - 1):
        left = (model.least + left[:, None, :]).min(axis=2)
    return float(left[:, 0].max() / model.room(model.devices))


def _extended(
    model: VirtualModel, plans: Partial, stage: int, limit: float, rest: Floats, settings: Settings
) -> tuple[Partial, bool]:
    """Return the plans with one more stage each, and whether some were left out for lack of room or time."""
    empty = np.zeros((0, plans.borders.shape[1] + 1), dtype=np.int64)
    found, cut = [Partial(empty, plans.loads[:0], plans.value[:0], plans.kinds[:0])], False
    at, rank = plans.borders[:, -1], int(model.ranks[stage])
    for a, place in product(np.unique(at).tolist(), range(len(model.costs))):
        if settings.expired:
            return _joined(found), True
        own, low = plans.kept(at == a).of_kind(model, rank, place, stage < model.devices), model.low[place]
        after = np.flatnonzero((low[:, a] < limit).all(axis=0) & np.isfinite(rest[0, stage + 1]))
        if len(own.value) * len(after) > EFFORT.products:
            own, cut = _promising(own, max(1, EFFORT.products // len(after))), True
        found.append(_pairs(model, own, stage, low[:, a, after], after, limit, rest[:, stage + 1]))
    return _joined(found), cut


def _joined(plans: list[Partial]) -> Partial:
    parts = ((each.borders, each.loads, each.value, each.kinds) for each in plans)
    return Partial(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _pairs(
    model: VirtualModel, own: Partial, stage: int, low: Floats, after: Ints, limit: float, rest: Floats
) -> Partial:
    """Return the plans that end at one cut, each extended to the cuts after it, as far as they can do.

    The devices of the stage are all of one kind. `low` has shape (terms, cuts after), `rest` (terms, m).
    """
    rank, later = int(model.ranks[stage]), model.ranks[stage + 1 :]
    if not len(own.value):
        return replace(own, borders=np.zeros((0, own.borders.shape[1] + 1), dtype=np.int64))
    grown = own.loads[:, :, rank, None] + low
    good, weight = (grown < limit).all(axis=1), float(model.weight[own.kinds[0, rank]])
    spare = _spare(model, own, stage, limit)
    for term in range(len(rest)):  # what is left must fit below the limit on devices with further stages
        free = spare[term][:, None] - weight * low[term]
        free = free if rank in later else free - weight * (limit - grown[:, term])
        good &= rest[term, after] <= free + ROUNDING * model.devices * limit
    plan, which = np.nonzero(good)
    borders = np.concatenate((own.borders[plan], after[which, None]), axis=1)
    loads, value, kinds = own.loads[plan], own.value[plan], own.kinds[plan]
    loads[:, :, rank] = grown[plan, :, which]
    if rank not in later:
        value = np.maximum(value, loads[:, :, rank].max(axis=1))
        if model.scarce:
            fitting = np.array(
                [model.fits(rank, DealtStages(*each)) for each in zip(borders, kinds, strict=True)],
                dtype=bool,
            )
            return Partial(borders[fitting], loads[fitting], value[fitting], kinds[fitting])
    return Partial(borders, loads, value, kinds)


def _spare(model: VirtualModel, plans: Partial, stage: int, limit: float) -> Floats:
    """Return the weighted load that devices can have below a limit from a stage on, shape (terms, plans)."""
    open_ = np.unique(model.ranks[stage:])
    weight = np.where(plans.kinds >= 0, model.weight[plans.kinds], 0.0)
    free = ((limit - plans.loads[:, :, open_]) * weight[:, None, open_]).sum(axis=2).T
    unknown = max(0, model.devices - 1 - stage)
    others = np.minimum(model.room(unknown), model.room(len(model.pool)) - weight.sum(axis=1))
    return np.asarray(free + (others if unknown else 0.0) * limit)


def _merged(model: VirtualModel, plans: Partial, stage: int) -> Partial:
    """Return one plan, of the least value, for each cut and loads of the devices that get further stages."""
    open_ = np.unique(model.ranks[stage + 1 :])
    largest = float(plans.loads.max(initial=0.0))
    scale = 10.0**DIGITS / largest if largest > 0 else 1.0
    keys = [plans.borders[:, -1:].astype(np.float64)]
    loads = plans.loads[:, :, open_].reshape(len(plans.value), -1)
    keys.append(np.round(loads * scale))
    if len(model.costs) > 1:
        keys += [plans.kinds[:, open_].astype(np.float64), _used(model, plans.kinds)]
    if model.scarce:  # what a device holds is known by its cuts so far
        keys.append(_memory_keys(model, plans, stage, open_))
    order = np.argsort(plans.value, kind="stable")
    _, first = np.unique(np.concatenate(keys, axis=1)[order], axis=0, return_index=True)
    return plans.kept(order[np.sort(first)])


def _used(model: VirtualModel, kinds: Ints) -> Floats:
    """Return how many devices of each kind plans use, shape (plans, kinds)."""
    places = np.array([costs.kind for costs in model.costs])
    used = np.where(kinds >= 0, places[kinds], -1)
    counts = [(used == kind).sum(axis=1) for kind in np.unique(places).tolist()]
    return np.stack(counts, axis=1).astype(np.float64)


def _memory_keys(model: VirtualModel, plans: Partial, stage: int, ranks: Ints) -> Floats:
    """Return what each device holds so far: once, the activations of each stage, and workspace."""
    costs, found = model.costs[0], []
    for rank in ranks.tolist():
        own = np.flatnonzero(model.ranks[: stage + 1] == rank)
        pairs = plans.borders[:, own], plans.borders[:, own + 1]
        found += [costs.once[pairs].sum(axis=1, keepdims=True), costs.kept[pairs]]
        found.append(costs.workspace[pairs].max(axis=1, initial=0.0, keepdims=True))
    return np.concatenate([*found, np.zeros((len(plans.value), 0))], axis=1)


def _promising(plans: Partial, width: int) -> Partial:
    """Return at most `width` plans: for each last cut those of the least and most even loads."""
    total, square = plans.loads[:, 0].sum(axis=1), (plans.loads[:, 0] ** 2).sum(axis=1)
    score = total * (1 + square / np.maximum(total, LEAST) ** 2)
    order = np.lexsort((score, plans.borders[:, -1]))
    at = plans.borders[order, -1]
    start = np.concatenate(([0], np.flatnonzero(np.diff(at)) + 1))
    place = np.arange(len(at)) - np.repeat(start, np.diff(np.append(start, len(at))))
    best = order[np.lexsort((score[order], place))][:width]
    return plans.kept(np.sort(best))


class Best:
    """The best plan so far, of all numbers of devices, and the least bound of these."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.value, self.bound = np.inf, np.inf
        self.model: VirtualModel | None = None
        self.stages: DealtStages | None = None
        self.plans = 0

    def offer(self, model: VirtualModel, stages: DealtStages | None) -> float:
        """Keep stages if they are the best so far and obey all rules; return their largest load."""
        if stages is None or not model.feasible(stages):
            return np.inf
        self.plans += 1
        value = float(model.loads(stages).max())
        if value < self.value:
            self.value, self.model, self.stages = value, model, stages
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
    if not model.cuts.complete:
        bound = min(bound, least_busy(model))
    best.bound = min(best.bound, bound)


def least_busy(model: VirtualModel) -> float:
    """Return the least weighted mean of the processing times: a bound for stages between any cuts."""
    return float(model.least_work[0, -1]) / model.room(model.devices)


def _first_bound(model: VirtualModel) -> float:
    """Return a lower bound: the mean load, or the least sum of stages' loads that is not below it."""
    mean = least_mean(model)
    if model.schedule.vee or len(model.least) > 1 or not np.isfinite(mean):
        return mean
    low = np.stack(model.low)
    loads = np.unique(low[np.isfinite(low)])
    return max(mean, _least_sum(loads, model.chunks, mean * (1 - 1e-12)))


def _least_sum(loads: Floats, terms: int, least: float) -> float:
    """Return the least sum of a number of loads that is at least `least`; -inf if that takes too long.

    Examples
    --------
    >>> _least_sum(np.array([2.0, 5.0]), 2, 5.0)
    7.0
    """
    if len(loads) ** (terms - 1) > EFFORT.sums:
        return -np.inf
    sums = np.zeros(1)
    for _ in range(terms - 1):
        sums = np.unique(sums[:, None] + loads)
    place = np.searchsorted(loads, least - sums)
    sums, place = sums[place < len(loads)], place[place < len(loads)]
    return float((sums + loads[place]).min(initial=np.inf))


def _start(model: VirtualModel, best: Best) -> None:
    """Offer stages of even work, and of even memory, after moves of their borders."""
    problem = model.problem
    numbers = np.array([costs.kind for costs in model.costs])
    for kinds in orders_of(model):
        shares = [(model.costs[0].work, model.weight[kinds])]
        if model.scarce:
            given = model.schedule, model.chunks, numbers[kinds]
            shares += [memory_shares(problem, *given), (problem.pipeline.activations, model.weight[kinds])]
        shares.append((np.ones(problem.n), model.weight[kinds]))
        for weight, speed in shares:
            stages = even_stages(model, weight, kinds, speed)
            if stages is not None and not best.settings.expired:
                best.offer(model, stages)
                best.offer(model, improved(model, stages, best.settings))


def _by_pairs(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound of the program over pairs of cuts, with limits that grow."""
    for step in (*EFFORT.limits, np.inf):
        limit = min(best.value, bound * step, _most(model))
        found = PairSearch(model, limit, best.settings).run()
        best.offer(model, found.stages)
        if not found.complete:
            _polish(model, best, [] if found.stages is None else [found.stages])
            return bound
        bound = max(bound, min(found.bound, best.value))
        if found.stages is not None:
            return bound
        if limit >= min(best.value, _most(model)):
            return bound if np.isfinite(best.value) else np.inf
    return bound


def _most(model: VirtualModel) -> float:
    """Return a limit above all loads."""
    alone = model.alone
    return 1.0 + model.chunks * float(alone[np.isfinite(alone)].max(initial=0.0))


def _by_loads(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound of the search stage by stage, with limits that grow until it is cut short."""
    for step in (*EFFORT.limits, np.inf):
        limit = min(best.value, bound * step, _most(model))
        found = best_rounds(model, limit, EFFORT.width, True, best.settings)
        for one in found[: EFFORT.exact]:
            best.offer(model, one.stages)
        if not found[0].complete:
            _polish(model, best, [one.stages for one in found[: EFFORT.polished] if one.stages is not None])
            return bound
        bound = max(bound, min(found[0].bound, best.value))
        if found[0].stages is not None:
            return bound
        if limit >= min(best.value, _most(model)):
            return bound if np.isfinite(best.value) else np.inf
    return bound


def _polish(model: VirtualModel, best: Best, plans: list[DealtStages]) -> None:
    """Offer plans after moves of their borders, and the best one after random moves and further ones."""
    for stages in plans:
        best.offer(model, improved(model, stages, best.settings))
    rng = np.random.default_rng(best.settings.seed)
    for _ in range(EFFORT.shakes):
        if best.settings.expired or best.model is not model or best.stages is None:
            return
        best.offer(model, improved(model, shaken(model, best.stages, rng), best.settings))


def _completely(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound after a search of all plans that may be better, if they are not too many."""
    found = best_rounds(model, min(best.value, _most(model)), EFFORT.widest, False, best.settings)
    if not found[0].complete:
        return bound
    value = np.inf
    for one in found:
        if best.settings.expired:
            return bound
        value = min(value, best.offer(model, one.stages))
    return max(bound, min(value, best.value))
