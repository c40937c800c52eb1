"""A lower bound on the largest load by prices of the loads and of the memory of devices.

With prices y[r] of the load of device r that sum to 1, and z[r, s] >= 0 of its memory M with the samples in
flight s, no largest load is below

    min over stages of  sum over r of y[r] * load[r]  +  sum over r and s of z[r, s] * (memory[r, s] - M),

since no device of a plan exceeds its memory. The minimum is a shortest path through the cuts, as each stage
pays by its number alone. Prices rise where the stages of that path load a device or its memory most. For two
layers that take 1 and 3, and a stage on each of two devices, the bound is 3 with all of y on the second
device; by the mean load it is 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.kernel import Modes
from partitioner.methods.virtual_stages.model import VirtualModel
from partitioner.problem.arrays import Floats, Ints


@dataclass(frozen=True)
class RankPricesEffort:
    """How long prices are changed.

    Parameters
    ----------
    rounds
        The most changes.
    patience
        Changes without a higher bound after which steps are halved.
    least
        The step at which the search ends, as a part of the first one.
    beyond
        The factor of the mean load that is aimed at where no plan is known.
    """

    rounds: int = 400
    patience: int = 12
    least: float = 0.01
    beyond: float = 1.3


EFFORT = RankPricesEffort()
ROUNDING = 1e-12


class StagePrices(NamedTuple):
    """What stages pay by their number.

    Parameters
    ----------
    load
        Shape (stages, terms): the price of each term of a load.
    once, kept
        Shape (stages,): the prices of what is held once, and of the activations of a sample.
    """

    load: Floats
    once: Floats
    kept: Floats


@njit(cache=True, nogil=True)
def cheapest_stages(
    low: Floats, first: Ints, end: Ints, modes: Modes, prices: StagePrices, borders: Ints, chosen: Ints
) -> float:
    """Return the least price of all stages; fill `borders`, (stages + 1,), and their modes, (stages,).

    It is infinite if there are no stages between the cuts.

    Parameters
    ----------
    low
        Shape (terms, m, m): the terms of loads, infinite where there is no stage.
    first, end, modes
        The modes of stages, as in :class:`PairedStages`.
    prices
        The prices.
    borders, chosen
        Filled.
    """
    terms, m, stages = len(low), len(first), len(chosen)
    reached = np.full((stages + 1, m), np.inf)
    parent, mode = np.zeros((stages + 1, m), np.int64), np.zeros((stages + 1, m), np.int64)
    reached[0, 0] = 0.0
    for stage in range(stages):
        once, kept = prices.once[stage], prices.kept[stage]
        for a in range(m):
            if reached[stage, a] == np.inf:
                continue
            for b in range(a + 1, m):
                if low[0, a, b] == np.inf:
                    continue
                price = reached[stage, a]
                for t in range(terms):
                    price += prices.load[stage, t] * low[t, a, b]
                for i in range(first[a, b], end[a, b]):
                    slower = prices.load[stage, 0] * modes.slower[i]
                    total = price + slower + once * modes.once[i] + kept * modes.kept[i]
                    if total < reached[stage + 1, b]:
                        reached[stage + 1, b] = total
                        parent[stage + 1, b], mode[stage + 1, b] = a, i
    borders[stages] = m - 1
    for stage in range(stages, 0, -1):
        borders[stage - 1] = parent[stage, borders[stage]]
        chosen[stage - 1] = mode[stage, borders[stage]]
    return float(reached[stages, m - 1])


class PricedBound(NamedTuple):
    """A lower bound, and the stages of the least price."""

    bound: float
    borders: Ints


class RankPrices:
    """The prices of the devices of a model, all of one kind, whose stages go round them.

    Parameters
    ----------
    model
        The devices and stages.
    """

    def __init__(self, model: VirtualModel) -> None:
        self.model, costs = model, model.costs[0]
        self.low, self.table = (
            np.ascontiguousarray(model.low[0]),
            costs.modes if model.scarce else costs.least_modes,
        )
        each = [model.samples(rank).astype(np.float64) for rank in range(model.devices)]
        self.rank = np.repeat(np.arange(model.devices), [len(one) for one in each])
        self.samples = np.concatenate(each)  # of all combinations of all devices
        self.memory = costs.memory if model.scarce else np.inf
        self.unit = costs.memory if 0 < costs.memory < np.inf else 1.0
        self.load = np.full((model.devices, len(self.low)), 1 / (model.devices * len(self.low)))
        self.held = np.zeros(len(self.rank))

    def priced(self) -> tuple[float, Ints, Floats, Floats]:
        """Return the bound of the prices, the stages, and the loads and excess of memory of these.

        The loads have shape (devices, terms); the excess is a part of the memory, of every combination.
        """
        model, chunk = self.model, np.arange(self.model.stages) // self.model.devices
        scale = 0.0 if np.isinf(self.memory) else 1 / self.unit
        each = [np.bincount(self.rank, self.held * s, model.devices) for s in self.samples.T]
        once = (scale * np.bincount(self.rank, self.held, model.devices)).astype(np.float64)
        kept = (scale * np.stack(each)).astype(np.float64)
        prices = StagePrices(self.load[model.ranks], once[model.ranks], kept[chunk, model.ranks])
        borders, chosen = np.zeros(model.stages + 1, np.int64), np.zeros(model.stages, np.int64)
        first, end, modes = self.table
        value = cheapest_stages(self.low, first, end, modes, prices, borders, chosen)
        loads = np.zeros_like(self.load)
        np.add.at(loads, model.ranks, self.low[:, borders[:-1], borders[1:]].T)
        np.add.at(loads[:, 0], model.ranks, modes.slower[chosen])
        amount = np.bincount(model.ranks, modes.once[chosen], model.devices)[self.rank]
        amount = amount + (self.samples * modes.kept[chosen].reshape(-1, model.devices).T[self.rank]).sum(
            axis=1
        )
        if np.isinf(self.memory):
            return value, borders, loads, np.full(len(self.rank), -1.0)
        room = self.memory / self.unit
        return value - room * float(self.held.sum()), borders, loads, amount / self.unit - room

    def change(self, loads: Floats, excess: Floats, step: float) -> None:
        """Raise the prices along loads and excess."""
        move = step * (loads - loads.mean())
        self.load = _on_simplex(self.load + move / max(1.0, abs(move).max()))
        if np.isfinite(self.memory):
            self.held = np.maximum(0.0, self.held + step * excess)


def priced_stages(model: VirtualModel, value: float, settings: Settings) -> Iterator[PricedBound]:
    """Yield rising lower bounds on the largest load of a model, and stages with them.

    `value` is that of a known plan, or infinity.
    """
    prices, best, factor, waited = RankPrices(model), -np.inf, 1.0, 0
    for _ in range(EFFORT.rounds):
        bound, borders, loads, excess = prices.priced()
        if settings.expired or np.isinf(bound):
            return
        if bound > best:
            best, waited = bound, 0
            yield PricedBound(bound * (1 - ROUNDING), borders)
        waited += 1
        if waited > EFFORT.patience:
            factor, waited = factor / 2, 0
        aim = min(value, EFFORT.beyond * best)
        span = loads - loads.mean()
        size = float((span**2).sum() + (excess**2 * loads.max() ** 2).sum())
        if bound >= value or factor < EFFORT.least or size == 0:
            return
        prices.change(loads, excess * loads.max() ** 2, factor * max(aim - bound, 0.0) / size)


def _on_simplex(point: Floats) -> Floats:
    """Return the nearest point whose entries are at least 0 and sum to 1.

    Examples
    --------
    >>> _on_simplex(np.array([1.0, 0.5, -1.0])).tolist()
    [0.75, 0.25, 0.0]
    """
    ordered = -np.sort(-point, axis=None)
    over = (np.cumsum(ordered) - 1.0) / np.arange(1, ordered.size + 1)
    found: Floats = np.maximum(point - over[np.flatnonzero(ordered > over)[-1]], 0.0)
    return found
