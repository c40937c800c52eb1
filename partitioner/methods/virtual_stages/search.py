"""The search for the best stages on a given number of devices: bounds, programs, and moves of borders.

Without the loads of devices all 16 plans with three or four stages on a device are worse, without moves at
random 12 (scripts/ablations.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from partitioner.methods.method import Settings, meets
from partitioner.methods.virtual_stages.borders import memory_shares, usual_orders
from partitioner.methods.virtual_stages.model import DealtStages, VirtualModel
from partitioner.methods.virtual_stages.pairs import PairSearch
from partitioner.methods.virtual_stages.prices import priced_stages
from partitioner.methods.virtual_stages.rounds import best_rounds, least_mean
from partitioner.problem.arrays import Floats, Ints


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
    width, wide, widest
        The plans that are kept for each number of stages, those that are kept then if they were too few, and
        those of a search of all plans.
    halvings
        The searches that keep more plans.
    sums
        Sums of loads made at once.
    exact
        Plans of least bounds whose loads are computed.
    polished
        The best plans that are improved by moves of borders.
    shakes, shaken
        How often borders are moved at random from a local optimum, and how many at a time.
    moves, scarce_moves, joint_moves
        The moves that are tried, where memory is scarce, and with the tensors that stages share.
    """

    limits: tuple[float, ...] = (1.0005, 1.003, 1.01, 1.03, 1.06, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)
    width: int = 4000
    wide: int = 64_000
    widest: int = 30_000
    halvings: int = 6
    sums: int = 4_000_000
    exact: int = 300
    polished: int = 5
    shakes: int = 60
    shaken: int = 3
    moves: int = 20_000
    scarce_moves: int = 400
    joint_moves: int = 1500


EFFORT = StageSearchEffort()


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
        if not best.closed(bound) and (model.chooses or not (model.adds_up or model.chunks == 2)):
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
    if (
        model.schedule.vee
        or len(model.least) > 1
        or not np.isfinite(mean)
        or (model.chooses and model.scarce)
    ):
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
    slower = max(float(costs.modes.modes.slower.max(initial=0.0)) for costs in model.costs)
    return 1.0 + model.chunks * (float(alone[np.isfinite(alone)].max(initial=0.0)) + slower)


def _by_prices(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound by prices of devices of one kind; offer the stages of the best prices."""
    if len(model.costs) > 1 or model.schedule.vee:
        return bound
    stages, kinds = None, np.zeros(model.devices, dtype=np.int64)
    for found in priced_stages(model, best.value, best.settings):
        bound, stages = max(bound, min(found.bound, best.value)), DealtStages(found.borders, kinds)
        if best.closed(bound):
            return bound
    if stages is not None:
        best.offer(model, refined(model, stages, best.settings))
    return bound


def _by_loads(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound of the search stage by stage, with limits that grow until it is cut short."""
    bound = _by_prices(model, best, bound)
    if best.closed(bound):
        return bound
    for step in (*EFFORT.limits, np.inf):
        limit = min(best.value, bound * step, _most(model))
        found = best_rounds(model, limit, EFFORT.width, True, best.settings)
        for one in found[: EFFORT.exact]:
            best.offer(model, one.stages)
        if not found[0].complete:
            _polish(model, best, [one.stages for one in found[: EFFORT.polished] if one.stages is not None])
            bound = _by_more_loads(model, best, bound)
            if best.model is model and best.stages is not None:
                best.offer(model, refined(model, best.stages, best.settings))
            return bound
        bound = max(bound, min(found[0].bound, best.value))
        if found[0].stages is not None:
            return bound
        if limit >= min(best.value, _most(model)):
            return bound if np.isfinite(best.value) else np.inf
    return bound


def _by_more_loads(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound after searches that keep more plans, halfway between bound and value."""
    high = best.value
    for _ in range(EFFORT.halvings):
        if best.settings.expired or best.closed(bound) or np.isinf(high):
            break
        limit = (bound + high) / 2
        found = best_rounds(model, limit, EFFORT.wide, True, best.settings)
        offered = [(best.offer(model, one.stages), i) for i, one in enumerate(found[: EFFORT.exact])]
        for _, i in sorted(offered)[: EFFORT.polished]:
            stages = found[i].stages
            best.offer(model, None if stages is None else refined(model, stages, best.settings))
        if not found[0].complete:
            high = limit
            continue
        bound = max(bound, min(found[0].bound, best.value))
        if found[0].stages is not None:
            break
        high = min(high, best.value)
    return bound


def _polish(model: VirtualModel, best: Best, plans: list[DealtStages]) -> None:
    """Offer plans after moves of their borders, and the best one after random moves and further ones."""
    for stages in plans:
        best.offer(model, refined(model, stages, best.settings))
    rng = np.random.default_rng(best.settings.seed)
    for _ in range(EFFORT.shakes):
        if best.settings.expired or best.model is not model or best.stages is None:
            return
        best.offer(model, improved(model, shaken(model, best.stages, rng), best.settings))


def _completely(model: VirtualModel, best: Best, bound: float) -> float:
    """Return the bound after a search of all plans that may be better, if they are not too many."""
    bare = replace(model, bare=model.schedule.vee)  # both stages of the last device share any net
    found = best_rounds(bare, min(best.value, _most(model)), EFFORT.widest, False, best.settings)
    if not found[0].complete:
        return bound
    value = np.inf
    for one in found:
        if best.settings.expired:
            return bound
        value = min(value, best.offer(model, one.stages))
    return max(bound, min(value, best.value))


# Stages of even weight, and moves of their borders and of the kinds of their devices that lower loads.

Cost = tuple[float, float, float]
LESS = 1 - 1e-12
LEAST = 1e-150  # bytes that a device lacks that has no modes which fit together


def even_stages(model: VirtualModel, weight: Floats, kinds: Ints, speed: Floats) -> DealtStages | None:
    """Return stages along one order, whose weights are even by the speed of their devices.

    It is None if there are too few supernodes. `weight` has shape (n,), `speed` shape (devices,).
    """
    path = _path(model)
    if len(path) <= model.stages:
        return None
    total = model.cuts.member[path] @ weight
    speed = speed[model.ranks]
    aims = total[-1] * (np.cumsum(speed)[:-1] / speed.sum())
    place = np.abs(total[:, None] - aims).argmin(axis=0)
    steps = np.arange(1, model.stages)
    place = np.maximum.accumulate(place - steps) + steps  # no stage is empty
    place = np.minimum(np.maximum(place, steps), len(path) - 1 - model.stages + steps)
    return DealtStages(path[np.concatenate(([0], place, [len(path) - 1]))], kinds)


def orders_of(model: VirtualModel) -> list[Ints]:
    """Return usual orders of the devices, as positions in :attr:`VirtualModel.costs`.

    Where several devices can run a stage together, each rank has one, or the first ranks have more.
    """
    degrees = np.array([costs.degree for costs in model.costs])
    alone = np.flatnonzero(degrees == degrees.min())
    each = [model.costs[place] for place in alone.tolist()]
    count = model.problem.count[[costs.kind for costs in each]]
    memory = np.array([costs.memory for costs in each])
    orders = [alone[order] for order in usual_orders(count, model.weight[alone], memory, model.devices)]
    return orders if len(alone) == len(degrees) else [*orders, *(_widened(model, each) for each in orders)]


def _widened(model: VirtualModel, kinds: Ints) -> Ints:
    """Return ranks of more devices each, rank by rank, as far as there are devices."""
    going = True
    while going:
        going = False
        for rank in range(len(kinds)):
            now = model.costs[int(kinds[rank])]
            wider = [
                (costs.degree, place)
                for place, costs in enumerate(model.costs)
                if costs.kind == now.kind and costs.degree > now.degree
            ]
            dealt = kinds.copy()
            dealt[rank] = min(wider)[1] if wider else kinds[rank]
            if wider and (model.used(dealt) <= model.problem.count).all():
                kinds, going = dealt, True
    return kinds


def _path(model: VirtualModel) -> Ints:
    """Return the cuts of one order of the supernodes, in which each is followed by the next."""
    cuts, found = model.cuts, [0]
    while found[-1] < len(cuts) - 1:
        found.append(int(np.argmax(cuts.nested[found[-1]])))
    return np.array(found)


def cost_of(model: VirtualModel, stages: DealtStages, joint: bool = False) -> Cost:
    """Return the excess of memory, the largest load, and the sum of squared loads, in order of importance.

    Stages share no tensors unless `joint`.
    """
    if joint:
        loads = model.loads(stages) if model.feasible(stages) else np.full(model.devices, np.inf)
        return 0.0, float(loads.max()), float((loads**2).sum())
    loads, slower = model.quick_loads(stages), model.slower(stages)
    unfit = np.isinf(slower)  # modes hold too much together, though each may hold less
    loads += np.where(unfit, 0.0, slower)
    excess = model.excess(stages) + LEAST * int(unfit.sum())
    return excess, float(loads.max()), float((loads**2).sum())


def refined(model: VirtualModel, stages: DealtStages, settings: Settings) -> DealtStages:
    """Return the stages after moves as in :func:`improved`, and then with the tensors that stages share."""
    found = improved(model, stages, settings)
    return found if model.adds_up else improved(model, found, settings, joint=True)


def improved(
    model: VirtualModel, stages: DealtStages, settings: Settings, joint: bool = False
) -> DealtStages:
    """Return the stages after moves of single borders and exchanges of kinds that each lower the cost."""
    cost, going = cost_of(model, stages, joint), True
    left = EFFORT.joint_moves if joint else EFFORT.scarce_moves if model.scarce else EFFORT.moves
    while going:
        going = False
        for other in _moves(model, stages):
            left -= 1
            if settings.expired or left < 0:
                return stages
            found = cost_of(model, other, joint)
            if _lower(found, cost):
                stages, cost, going = other, found, True
                break
    return stages


def _lower(one: Cost, other: Cost) -> bool:
    """Whether a cost is lower than another beyond rounding."""
    for a, b in zip(one, other, strict=True):
        if a < b * LESS:
            return True
        if a > b / LESS:
            return False
    return False


def _moves(model: VirtualModel, stages: DealtStages) -> Iterator[DealtStages]:
    """Yield the stages after each move of a border to a cut between its neighbours, and of a kind."""
    borders, kinds = stages
    for k in range(1, len(borders) - 1):
        for cut in _between(model, stages, k).tolist():
            if cut != borders[k]:
                moved = borders.copy()
                moved[k] = cut
                yield DealtStages(moved, kinds)
    for dealt in _other_kinds(model, kinds) if len(model.costs) > 1 else ():
        yield DealtStages(borders, dealt)


def _between(model: VirtualModel, stages: DealtStages, k: int) -> Ints:
    """Return the cuts at which a border may be between its neighbours."""
    (before, _, after), kinds = stages.borders[k - 1 : k + 2], stages.kinds[model.ranks[k - 1 : k + 1]]
    one, other = (model.costs[place].allowed for place in kinds.tolist())
    return np.flatnonzero(one[before] & other[:, after])


def _other_kinds(model: VirtualModel, kinds: Ints) -> Iterator[Ints]:
    """Yield the kinds after each exchange of two devices, and of a device for one that is not used."""
    for i, j in combinations(range(len(kinds)), 2):
        if kinds[i] != kinds[j]:
            dealt = kinds.copy()
            dealt[[i, j]] = kinds[[j, i]]
            yield dealt
    for i, place in product(range(len(kinds)), range(len(model.costs))):
        if place != kinds[i]:
            dealt = kinds.copy()
            dealt[i] = place
            if (model.used(dealt) <= model.problem.count).all():
                yield dealt


def shaken(model: VirtualModel, stages: DealtStages, rng: np.random.Generator) -> DealtStages:
    """Return the stages with some of the borders moved at random."""
    count = len(stages.borders)
    for k in rng.integers(1, count - 1, EFFORT.shaken).tolist() if count > 2 else ():
        between = _between(model, stages, k)
        if len(between):
            moved = stages.borders.copy()
            moved[k] = rng.choice(between)
            stages = DealtStages(moved, stages.kinds)
    return stages
