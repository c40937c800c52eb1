"""Stages of even weight, and moves of their borders and of the kinds of their devices that lower loads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.borders import usual_orders
from partitioner.methods.virtual_stages.model import DealtStages, VirtualModel
from partitioner.problem.arrays import Floats, Ints

Cost = tuple[float, float, float]
LESS = 1 - 1e-12
LEAST = 1e-150  # bytes that a device lacks that has no modes which fit together


@dataclass(frozen=True)
class StageMovesEffort:
    """How often stages are moved.

    Measured at half and at twice each value on gnmt and unet training, two stages on each of four devices:
    values and bounds stay as they are.

    Parameters
    ----------
    moves, scarce_moves, joint_moves
        The moves that are tried, where memory is scarce, and with the tensors that stages share.
    shaken
        How many borders are moved at random at a time.
    """

    moves: int = 20_000
    scarce_moves: int = 400
    joint_moves: int = 1500
    shaken: int = 3


EFFORT = StageMovesEffort()


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
