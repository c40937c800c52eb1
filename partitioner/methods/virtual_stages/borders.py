"""Local search: plans of even stages, and moves of the borders between stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Floats, Ints

Cost = tuple[float, float, float]
LESS = 1 - 1e-12
MOST_MOVES, MOST_SCARCE = 20_000, 400  # moves that are tried, and where memory is scarce
SHAKEN = 3  # borders that are moved at random to leave a local optimum


def even_borders(model: VirtualModel, weight: Floats) -> Ints | None:
    """Return borders along one order with stages of even weight; None if there are too few supernodes.

    `weight` has shape (n,).
    """
    path = _path(model)
    if len(path) <= model.stages:
        return None
    total = model.costs.cuts.member[path] @ weight
    aims = total[-1] * np.arange(1, model.stages) / model.stages
    place = np.abs(total[:, None] - aims).argmin(axis=0)
    steps = np.arange(1, model.stages)
    place = np.maximum.accumulate(place - steps) + steps  # no stage is empty
    place = np.minimum(np.maximum(place, steps), len(path) - 1 - model.stages + steps)
    return path[np.concatenate(([0], place, [len(path) - 1]))]


def _path(model: VirtualModel) -> Ints:
    """Return the cuts of one order of the supernodes, in which each is followed by the next."""
    cuts, found = model.costs.cuts, [0]
    while found[-1] < len(cuts) - 1:
        found.append(int(np.argmax(cuts.nested[found[-1]])))
    return np.array(found)


def cost_of(model: VirtualModel, borders: Ints) -> Cost:
    """Return the excess of memory, the largest load, and the sum of squared loads, in order of importance."""
    loads = model.quick_loads(borders)
    return model.excess(borders), float(loads.max()), float((loads**2).sum())


def improved(model: VirtualModel, borders: Ints, settings: Settings) -> Ints:
    """Return the borders after moves of single borders, as long as one lowers the cost."""
    cost, going, left = cost_of(model, borders), True, MOST_SCARCE if model.scarce else MOST_MOVES
    while going:
        going = False
        for other in _moves(model, borders):
            left -= 1
            if settings.expired or left < 0:
                return borders
            found = cost_of(model, other)
            if _lower(found, cost):
                borders, cost, going = other, found, True
                break
    return borders


def _lower(one: Cost, other: Cost) -> bool:
    """Whether a cost is lower than another beyond rounding."""
    for a, b in zip(one, other, strict=True):
        if a < b * LESS:
            return True
        if a > b / LESS:
            return False
    return False


def _moves(model: VirtualModel, borders: Ints) -> Iterator[Ints]:
    """Yield the borders after each move of one of them to a cut between its neighbours."""
    allowed = model.costs.allowed
    for k in range(1, len(borders) - 1):
        for cut in np.flatnonzero(allowed[borders[k - 1]] & allowed[:, borders[k + 1]]).tolist():
            if cut != borders[k]:
                moved = borders.copy()
                moved[k] = cut
                yield moved


def shaken(model: VirtualModel, borders: Ints, rng: np.random.Generator) -> Ints:
    """Return the borders with some of them moved at random."""
    allowed, moved = model.costs.allowed, borders.copy()
    for k in rng.integers(1, len(borders) - 1, SHAKEN).tolist() if len(borders) > 2 else ():
        between = np.flatnonzero(allowed[moved[k - 1]] & allowed[:, moved[k + 1]])
        if len(between):
            moved[k] = rng.choice(between)
    return moved
