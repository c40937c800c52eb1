"""The search for stages on a given number of devices, stage by stage.

It is for schedules that go round the devices: stage i on device i mod p.

Plans for the first stages are extended stage by stage. Of plans that end at the same cut and whose devices
have the same loads, so far as further stages will add to them, the best one is kept. All plans are kept below
a limit, so that the search is exact; if they become too many, the most promising ones of each cut are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.kernel import Modes
from partitioner.methods.virtual_stages.model import DealtStages, StagesFound, VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class RoundsEffort:
    """How many plans are extended at once.

    Measured as :class:`partitioner.methods.virtual_stages.search.StageSearchEffort`.

    Parameters
    ----------
    products
        Extensions of plans made at once.
    """

    products: int = 4_000_000


EFFORT = RoundsEffort()


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
    modes
        Shape (plans, stages so far): the modes of the stages, in :attr:`ModeTable.modes`.
    """

    borders: Ints
    loads: Floats
    value: Floats
    kinds: Ints
    modes: Ints

    def kept(self, which: Ints | Bools) -> Partial:
        """Return some of the plans."""
        return Partial(*(each[which] for each in vars(self).values()))

    def of_kind(self, model: VirtualModel, rank: int, place: int, first: bool) -> Partial:
        """Return the plans in which a device is of a kind; if it gets its first stage now, may be of it."""
        if not first:
            return self.kept(self.kinds[:, rank] == place)
        kind, degree = model.costs[place].kind, model.costs[place].degree
        used = _used(model, self.kinds)[:, kind]
        found = self.kept(used + degree <= model.problem.count[kind])
        found.kinds[:, rank] = place
        if rank == model.devices - 1 and model.problem.limits.all_devices:
            everything = [model.obeys(each) for each in _used(model, found.kinds).tolist()]
            return found.kept(np.array(everything, dtype=bool))
        return found


@dataclass(frozen=True, eq=False)
class ModeTable:
    """The modes of stages on all kinds.

    Parameters
    ----------
    first, end
        Shape (K, m, m): the modes of a stage on each kind are those from ``first`` to ``end``.
    modes
        The modes of all kinds.
    """

    first: Ints
    end: Ints
    modes: Modes

    @classmethod
    def of(cls, model: VirtualModel, least: bool) -> ModeTable:
        """Return the modes of a model; or one mode for each stage that is no worse than any of its modes."""
        each = [costs.least_modes if least or not model.scarce else costs.modes for costs in model.costs]
        start = np.cumsum([0, *(len(one.modes.slower) for one in each)])
        first = np.stack([one.first + begin for one, begin in zip(each, start, strict=False)])
        end = np.stack([one.end + begin for one, begin in zip(each, start, strict=False)])
        columns = zip(*(one.modes for one in each), strict=True)
        return cls(first, end, Modes(*(np.concatenate(column) for column in columns)))

    def of_stages(self, place: int, cut: int, after: Ints) -> tuple[Ints, Ints]:
        """Return for each mode of the stages from a cut to others the place of the stage, and the mode."""
        first, end = self.first[place, cut, after], self.end[place, cut, after]
        which = np.repeat(np.arange(len(after)), end - first)
        within = np.arange(len(which)) - np.repeat(np.cumsum(end - first) - (end - first), end - first)
        return which, first[which] + within


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
    rest, table = _least_rest(model), ModeTable.of(model, not merge)
    start, loads = np.zeros((1, 1), dtype=np.int64), np.zeros((1, len(model.least), model.devices))
    plans = Partial(start, loads, np.zeros(1), np.full((1, model.devices), -1), start[:, :0])
    complete = True
    for stage in range(model.stages):
        plans, cut = _extended(model, plans, stage, limit, rest, table, settings)
        complete = complete and not cut
        if not len(plans.value):
            return [StagesFound(None, limit if complete else 0.0, complete)]
        if merge:
            plans = _merged(model, plans, stage, table)
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
    model: VirtualModel,
    plans: Partial,
    stage: int,
    limit: float,
    rest: Floats,
    table: ModeTable,
    settings: Settings,
) -> tuple[Partial, bool]:
    """Return the plans with one more stage each, and whether some were left out for lack of room or time."""
    none = plans.kept(np.zeros(0, dtype=np.int64))
    found, cut = [_grown(none, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))], False
    at, rank = plans.borders[:, -1], int(model.ranks[stage])
    for a, place in product(np.unique(at).tolist(), range(len(model.costs))):
        if settings.expired:
            return _joined(found), True
        own, low = plans.kept(at == a).of_kind(model, rank, place, stage < model.devices), model.low[place]
        after = np.flatnonzero((low[:, a] < limit).all(axis=0) & np.isfinite(rest[0, stage + 1]))
        which, mode = table.of_stages(place, a, after)
        if len(own.value) * len(which) > EFFORT.products:
            own, cut = _promising(own, max(1, EFFORT.products // len(which))), True
        terms = low[:, a, after[which]]
        terms[0] += table.modes.slower[mode]
        extended = _pairs(model, own, stage, terms, after[which], mode, limit, rest[:, stage + 1])
        found.append(_fitting(model, extended, rank, table) if model.scarce else extended)
    return _joined(found), cut


def _joined(plans: list[Partial]) -> Partial:
    return Partial(
        *(np.concatenate(column) for column in zip(*(vars(p).values() for p in plans), strict=True))
    )


def _grown(plans: Partial, after: Ints, mode: Ints) -> Partial:
    """Return plans with the cut after one more stage, and the mode of this."""
    borders = np.concatenate((plans.borders, after[:, None]), axis=1)
    return replace(plans, borders=borders, modes=np.concatenate((plans.modes, mode[:, None]), axis=1))


def _pairs(
    model: VirtualModel,
    own: Partial,
    stage: int,
    low: Floats,
    after: Ints,
    mode: Ints,
    limit: float,
    rest: Floats,
) -> Partial:
    """Return the plans that end at one cut, each extended to the cuts after it, as far as they can do.

    The devices of the stage are all of one kind. `low` has shape (terms, stages), `after` and `mode` have
    shape (stages,), `rest` (terms, m).
    """
    rank, later = int(model.ranks[stage]), model.ranks[stage + 1 :]
    if not len(own.value):
        return _grown(own, after[:0], mode[:0])
    grown = own.loads[:, :, rank, None] + low
    good, weight = (grown < limit).all(axis=1), float(model.weight[own.kinds[0, rank]])
    spare = _spare(model, own, stage, limit)
    for term in range(len(rest)):  # what is left must fit below the limit on devices with further stages
        free = spare[term][:, None] - weight * low[term]
        free = free if rank in later else free - weight * (limit - grown[:, term])
        good &= rest[term, after] <= free + ROUNDING * model.devices * limit
    plan, which = np.nonzero(good)
    found = _grown(own.kept(plan), after[which], mode[which])
    found.loads[:, :, rank] = grown[plan, :, which]
    if rank in later:
        return found
    return replace(found, value=np.maximum(found.value, found.loads[:, :, rank].max(axis=1)))


def _fitting(model: VirtualModel, plans: Partial, rank: int, table: ModeTable) -> Partial:
    """Return the plans whose stages so far on a device, all of one kind, fit its memory."""
    if not len(plans.value):
        return plans
    own = np.flatnonzero(model.ranks[: plans.modes.shape[1]] == rank)
    once, kept, workspace = (each[plans.modes[:, own]] for each in table.modes[1:])
    held = (kept @ model.samples(rank)[:, : len(own)].T).max(axis=1)
    memory = model.costs[int(plans.kinds[0, rank])].memory
    return plans.kept(once.sum(axis=1) + held + workspace.max(axis=1) <= memory)


def _spare(model: VirtualModel, plans: Partial, stage: int, limit: float) -> Floats:
    """Return the weighted load that devices can have below a limit from a stage on, shape (terms, plans)."""
    open_ = np.unique(model.ranks[stage:])
    weight = np.where(plans.kinds >= 0, model.weight[plans.kinds], 0.0)
    free = ((limit - plans.loads[:, :, open_]) * weight[:, None, open_]).sum(axis=2).T
    unknown = max(0, model.devices - 1 - stage)
    others = np.minimum(model.room(unknown), model.room(model.devices) - weight.sum(axis=1))
    return np.asarray(free + (others if unknown else 0.0) * limit)


def _merged(model: VirtualModel, plans: Partial, stage: int, table: ModeTable) -> Partial:
    """Return one plan, of the least value, for each cut and loads of the devices that get further stages."""
    open_ = np.unique(model.ranks[stage + 1 :])
    largest = float(plans.loads.max(initial=0.0))
    scale = 10.0**DIGITS / largest if largest > 0 else 1.0
    keys = [plans.borders[:, -1:].astype(np.float64)]
    loads = plans.loads[:, :, open_].reshape(len(plans.value), -1)
    keys.append(np.round(loads * scale))
    if len(model.costs) > 1:
        keys += [plans.kinds[:, open_].astype(np.float64), _used(model, plans.kinds).astype(np.float64)]
    if model.scarce:  # what a device holds is known by the modes of its stages so far
        keys.append(_memory_keys(model, plans, stage, open_, table))
    order = np.argsort(plans.value, kind="stable")
    _, first = np.unique(np.concatenate(keys, axis=1)[order], axis=0, return_index=True)
    return plans.kept(order[np.sort(first)])


def _used(model: VirtualModel, kinds: Ints) -> Ints:
    """Return how many devices of each kind of the problem plans use, shape (plans, kinds)."""
    places = np.array([costs.kind for costs in model.costs])
    degrees = np.array([costs.degree for costs in model.costs])
    used, many = np.where(kinds >= 0, places[kinds], -1), np.where(kinds >= 0, degrees[kinds], 0)
    counts = [np.where(used == kind, many, 0).sum(axis=1) for kind in range(len(model.problem.count))]
    return np.stack(counts, axis=1)


def _memory_keys(model: VirtualModel, plans: Partial, stage: int, ranks: Ints, table: ModeTable) -> Floats:
    """Return what each device holds so far: once, the activations of each stage, and workspace."""
    found = []
    for rank in ranks.tolist():
        own = np.flatnonzero(model.ranks[: stage + 1] == rank)
        once, kept, workspace = (each[plans.modes[:, own]] for each in table.modes[1:])
        found += [once.sum(axis=1, keepdims=True), kept]
        found.append(workspace.max(axis=1, initial=0.0, keepdims=True))
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
