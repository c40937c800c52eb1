"""The nets of a chain and its precedence, and the least cost of a cut between two stages.

A cut leaves an ideal on its left. How much work may be there decides for many supernodes on which side they
are: one whose descendants are too much work for the right side is on the left, and one whose ancestors are
too much for the left side is on the right.
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.cuts.flow import LEFT, RIGHT, Undecided
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.problem import Problem

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
        above = _ancestors(before)
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


def _ancestors(before: list[list[int]]) -> Bools:
    """Return whether supernode u precedes v or is v, shape (n, n): row v, column u."""
    above = np.eye(len(before), dtype=bool)
    for v, row in enumerate(before):  # numbered in a topological order
        for u in row:
            above[v] |= above[u]
    return above
