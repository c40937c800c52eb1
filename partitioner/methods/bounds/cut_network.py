"""The nets of a chain and its precedence, and the least cost of a cut between two stages.

A cut leaves an ideal on its left. How much work may be there decides for many supernodes on which side they
are: one whose descendants are too much work for the right side is on the left, and one whose ancestors are
too much for the left side is on the right.

The least cost of a cut through the undecided part of a chain, by minimum cuts of a flow network.

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

from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.precedence import ancestors
from partitioner.problem.problem import Problem

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


RESOLUTION = 2.0**40  # units of flow that all nets cost together; costs are rounded down to units
ROUNDING = 1e-9


class CutNetwork:
    """Supernodes with their work, their precedence, and the nets that a cut may tear.

    Parameters
    ----------
    problem
        The problem of a chain.
    work
        Shape (n,): work of every supernode.
    cost
        Shape (nets,): cost of every net for a device that moves it.

    Attributes
    ----------
    total
        The work of all supernodes.
    between
        Shape (nets,): the most work between two cuts that both tear the net.
    """

    def __init__(self, problem: Problem, work: Floats, cost: Floats) -> None:
        self.work, self.cost, self.total = work, cost, float(work.sum())
        self.pins = problem.nets.pins
        before = problem.predecessors.lists()
        self.arcs = np.array([(v, u) for v, row in enumerate(before) for u in row], np.int64).reshape(-1, 2)
        above = ancestors(before)
        self.behind, self.ahead = above @ work, above.T @ work
        self.between = np.array([self._between(above, pins) for pins in self.pins.lists()])
        self.unit = max(float(cost.sum()), ROUNDING) / RESOLUTION

    def _between(self, above: Bools, pins: list[int]) -> float:
        """Ancestors of all pins are on the left of both cuts, and descendants of all on the right."""
        fixed = above[pins].all(axis=0) | above[:, pins].all(axis=1)
        return self.total - float(self.work[fixed].sum())

    def places(self, low: float, high: float) -> Ints | None:
        """Return where a cut with that much work on its left leaves the supernodes, shape (n,).

        Returns
        -------
        Ints or None
            `LEFT`, `RIGHT`, or a number of its own for each supernode that may be on either side; None if
            there is no such cut.
        """
        slack = ROUNDING * self.total
        left, right = self.total - self.ahead < low - slack, self.behind > high + slack
        if low > high + slack or (left & right).any():
            return None
        place = np.where(left, LEFT, RIGHT)
        free = ~(left | right)
        place[free] = RIGHT + 1 + np.arange(int(free.sum()))
        return place

    def may_tear(self, place: Ints) -> Bools:
        """Return whether each net may be torn by a cut that keeps to the places, shape (nets,)."""
        pins, start = place[self.pins.items], self.pins.start[:-1]
        torn: Bools = np.minimum.reduceat(pins, start) < np.maximum.reduceat(pins, start)
        return torn

    def least_cost(self, place: Ints, low: float, high: float, share: Floats) -> float:
        """Return a lower bound on the cost of the nets that a cut tears, each multiplied by its share.

        Parameters
        ----------
        place
            What :meth:`places` returned.
        low, high
            The least and the most work on the left.
        share
            Shape (nets,).
        """
        torn, nets = 0, []
        paid = np.floor(self.cost * share / self.unit).astype(np.int64)
        for net in np.flatnonzero(self.may_tear(place) & (paid > 0)).tolist():
            places, cost = set(place[self.pins.row(net)].tolist()), int(paid[net])
            if LEFT in places and RIGHT in places:
                torn += cost
            else:
                nets.append((sorted(places), cost))
        arcs = place[self.arcs]
        undecided = Undecided(
            nets=nets,
            arcs=arcs[(arcs > RIGHT).all(axis=1)],
            work=self.work[place > RIGHT],
            unit=self.unit,
        )
        decided = float(self.work[place == LEFT].sum())
        return torn * self.unit + (undecided.least_cost(low - decided, high - decided) if nets else 0.0)
