"""The search for schedules that go round the devices: stage i on device i mod p.

Plans for the first stages are extended stage by stage. Of plans that end at the same cut and whose devices
have the same loads, so far as further stages will add to them, the best one is kept. All plans are kept below
a limit, so that the search is exact; if they become too many, the most promising ones of each cut are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.found import StagesFound
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints

ROUNDING = 1e-12
LEAST = 1e-150  # of sums of loads by whose square others are divided
DIGITS = 11  # of loads that count as equal
MOST_PRODUCTS = 4_000_000  # extensions made at once


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
    """

    borders: Ints
    loads: Floats
    value: Floats

    def kept(self, which: Ints | Bools) -> Partial:
        """Return some of the plans."""
        return Partial(self.borders[which], self.loads[which], self.value[which])


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
    terms = len(model.low)
    rest = _least_rest(model)
    plans = Partial(np.zeros((1, 1), dtype=np.int64), np.zeros((1, terms, model.devices)), np.zeros(1))
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
    return [StagesFound(plans.borders[i], least, complete) for i in order.tolist()]


def _least_rest(model: VirtualModel) -> Floats:
    """Return the least sum of each term over all stages from one on, shape (terms, stages + 1, m)."""
    found = np.full((len(model.low), model.stages + 1, len(model.costs.cuts)), np.inf)
    found[:, -1, -1] = 0.0
    for stage in reversed(range(model.stages)):
        found[:, stage] = (model.low + found[:, stage + 1, None, :]).min(axis=2)
    return found


def least_mean(model: VirtualModel) -> float:
    """Return the least mean load of the devices, over all stages: a bound on the largest load."""
    rest = _least_rest(model)
    if not model.schedule.vee:
        return float(rest[:, 0, 0].max() / model.devices)
    left = (model.costs.alone + rest[:, model.devices + 1, None, :]).min(axis=2)  # of the last device
    for _ in range(model.devices - 1):
        left = (model.low + left[:, None, :]).min(axis=2)
    return float(left[:, 0].max() / model.devices)


def _extended(
    model: VirtualModel, plans: Partial, stage: int, limit: float, rest: Floats, settings: Settings
) -> tuple[Partial, bool]:
    """Return the plans with one more stage each, and whether some were left out for lack of room or time."""
    empty = np.zeros((0, plans.borders.shape[1] + 1), dtype=np.int64)
    found, cut = [(empty, plans.loads[:0], plans.value[:0])], False
    low, at = model.low, plans.borders[:, -1]
    for a in np.unique(at).tolist():
        if settings.expired:
            return Partial(*(np.concatenate(parts) for parts in zip(*found, strict=True))), True
        own = plans.kept(at == a)
        after = np.flatnonzero((low[:, a] < limit).all(axis=0) & np.isfinite(rest[0, stage + 1]))
        if len(own.value) * len(after) > MOST_PRODUCTS:
            own, cut = _promising(own, max(1, MOST_PRODUCTS // len(after))), True
        found.append(_pairs(model, own, stage, low[:, a, after], after, limit, rest[:, stage + 1]))
    return Partial(*(np.concatenate(parts) for parts in zip(*found, strict=True))), cut


def _pairs(
    model: VirtualModel, own: Partial, stage: int, low: Floats, after: Ints, limit: float, rest: Floats
) -> tuple[Ints, Floats, Floats]:
    """Return the plans that end at one cut, each extended to the cuts after it, as far as they can do.

    `low` has shape (terms, cuts after), `rest` (terms, m).
    """
    rank, later = int(model.ranks[stage]), model.ranks[stage + 1 :]
    open_ = np.unique(model.ranks[stage:])
    grown = own.loads[:, :, rank, None] + low
    good = (grown < limit).all(axis=1)
    for term in range(len(rest)):  # what is left must fit below the limit on devices with further stages
        free = (limit - own.loads[:, term, open_]).sum(axis=1)[:, None] - low[term]
        free = free if rank in later else free - (limit - grown[:, term])
        good &= rest[term, after] <= free * (1 + ROUNDING)
    plan, which = np.nonzero(good)
    borders = np.concatenate((own.borders[plan], after[which, None]), axis=1)
    loads, value = own.loads[plan], own.value[plan]
    loads[:, :, rank] = grown[plan, :, which]
    if rank not in later:
        value = np.maximum(value, loads[:, :, rank].max(axis=1))
        if model.scarce:
            fitting = np.array([model.fits(rank, each) for each in borders], dtype=bool)
            return borders[fitting], loads[fitting], value[fitting]
    return borders, loads, value


def _merged(model: VirtualModel, plans: Partial, stage: int) -> Partial:
    """Return one plan, of the least value, for each cut and loads of the devices that get further stages."""
    open_ = np.unique(model.ranks[stage + 1 :])
    largest = float(plans.loads.max(initial=0.0))
    scale = 10.0**DIGITS / largest if largest > 0 else 1.0
    keys = [plans.borders[:, -1:].astype(np.float64)]
    loads = plans.loads[:, :, open_].reshape(len(plans.value), -1)
    keys.append(np.round(loads * scale))
    if model.scarce:  # what a device holds is known by its cuts so far
        keys.append(_memory_keys(model, plans, stage, open_))
    order = np.argsort(plans.value, kind="stable")
    _, first = np.unique(np.concatenate(keys, axis=1)[order], axis=0, return_index=True)
    return plans.kept(order[np.sort(first)])


def _memory_keys(model: VirtualModel, plans: Partial, stage: int, ranks: Ints) -> Floats:
    """Return what each device holds so far: once, the activations of each stage, and workspace."""
    costs, found = model.costs, []
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
