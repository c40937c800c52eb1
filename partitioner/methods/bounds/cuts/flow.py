"""The least cost of a cut through the undecided part of a chain, by minimum cuts of a flow network.

A minimum cut may leave too little work on its left, or too much. A price for each unit of work that is
missing or too much makes no cut in the window dearer, so the least priced cost is a bound for every price. It
is concave in the price. The next price is where two cuts, one in the window and one outside of it, cost the
same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from ortools.graph.python import max_flow

from partitioner.problem.arrays import Floats, Ints

LEFT, RIGHT = 0, 1
UNLIMITED = 2**52
PRICES = 8
NEAR = 1e-6


class FlowCut(NamedTuple):
    """The cost of a cut and the work on its left."""

    cost: float
    left: float


class Window(NamedTuple):
    """Work on the left that is missing (`side` 1) below a limit, or too much (`side` -1) above it."""

    side: int
    limit: float

    def missing(self, left: float) -> float:
        """Return how far outside of the window that much work is; negative inside."""
        return self.side * (self.limit - left)


@dataclass(frozen=True, eq=False)
class Undecided:
    """Supernodes that may be on either side of a cut, numbered from 2, and the nets with a pin among them.

    Parameters
    ----------
    nets
        For each net the places of its pins, and its cost in units.
    arcs
        Shape (m, 2): a supernode and one that must be on the left if it is.
    work
        Shape (supernodes,).
    unit
        The cost of one unit.
    """

    nets: list[tuple[list[int], int]]
    arcs: Ints
    work: Floats
    unit: float

    def least_cost(self, low: float, high: float) -> float:
        """Return a lower bound on the cost of a cut with `low` to `high` work on its left."""
        outside, cost = self._cheapest(Window(1, low), 0.0)
        if low <= outside.left <= high:
            return cost
        return max(cost, self._priced(outside, Window(1, low) if outside.left < low else Window(-1, high)))

    def _priced(self, outside: FlowCut, window: Window) -> float:
        """Return the largest bound over some prices, from the cheapest cut of all, which is outside."""
        inside, best = self._all_on(window.side), 0.0
        for _ in range(PRICES):
            reach = window.missing(outside.left) - window.missing(inside.left)
            if window.missing(inside.left) > 0 or inside.cost <= outside.cost or reach <= 0:
                break
            price = (inside.cost - outside.cost) / reach
            expected = outside.cost + price * window.missing(outside.left)
            cut, bound = self._cheapest(window, price)
            best = max(best, bound)
            if bound >= expected * (1 - NEAR):
                break
            outside, inside = (cut, inside) if window.missing(cut.left) > 0 else (outside, cut)
        return best

    def _all_on(self, side: int) -> FlowCut:
        """Return the cut that has everything undecided on its left (`side` 1) or on its right."""
        other, left = (RIGHT, float(self.work.sum())) if side > 0 else (LEFT, 0.0)
        return FlowCut(sum(paid for places, paid in self.nets if other in places) * self.unit, left)

    def _cheapest(self, window: Window, price: float) -> tuple[FlowCut, float]:
        """Return the cheapest cut at a price of work outside of the window, and that cost, rounded down."""
        flow, total = max_flow.SimpleMaxFlow(), float(self.work.sum())
        tails, heads, room = self._arcs(window.side, price)
        flow.add_arcs_with_capacity(tails, heads, room)
        if flow.solve(LEFT, RIGHT) != flow.OPTIMAL:
            return FlowCut(0.0, window.limit), 0.0
        side = np.array(flow.get_source_side_min_cut(), dtype=np.int64)
        left = float(self.work[side[(side > RIGHT) & (side < 2 + len(self.work))] - 2].sum())
        free = total if window.side > 0 else 0.0
        bound = flow.optimal_flow() * self.unit + price * window.missing(free)
        return FlowCut(bound - price * window.missing(left), left), bound

    def _arcs(self, side: int, price: float) -> tuple[Ints, Ints, Ints]:
        """Return tails, heads and capacities of the network; work on the dear side costs the price."""
        arcs = [(v, u, UNLIMITED) for v, u in self.arcs.tolist()]
        fresh = 2 + len(self.work)
        for places, paid in self.nets:
            arcs.append((fresh, fresh + 1, paid))
            arcs += [(pin, fresh, UNLIMITED) for pin in places if pin != RIGHT]
            arcs += [(fresh + 1, pin, UNLIMITED) for pin in places if pin != LEFT]
            fresh += 2
        priced = np.floor(price * self.work / self.unit).astype(np.int64).tolist()
        for v, paid in enumerate(priced, 2):
            if paid:
                arcs.append((LEFT, v, paid) if side > 0 else (v, RIGHT, paid))
        tails, heads, room = (np.array(column, dtype=np.int64) for column in zip(*arcs, strict=True))
        return tails, heads, room
