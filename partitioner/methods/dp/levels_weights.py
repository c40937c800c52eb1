"""What segments of pipelines over levels weigh at least: work, memory, and transfers over their ends.

A segment is too heavy for its group if its weight by the relaxation, with that of the transfers that cross
its ends, exceeds the capacity of the group at the threshold; and so is what is left for the other groups.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.relaxation import SLACK, Relaxation
from partitioner.methods.dp.lattice import Lattice, remaining_weights
from partitioner.methods.dp.levels_model import GroupLayout, Prices
from partitioner.methods.dp.stages import Bools
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Nets
from partitioner.problem.variants import PipelineProblem


@njit(cache=True)
def segment_costs(members, low, highs, pin_start, pin, source, enter, leave):  # type: ignore[no-untyped-def]
    """Return the cost of the nets that enter or leave a segment, each once, for each of the `highs`.

    A segment holds the supernodes of one of the `highs` that `low` does not hold; `enter` and `leave`,
    shape (E,), are the costs of nets that cross its ends.
    """
    total = np.zeros(len(highs), np.float64)
    for i in range(len(highs)):
        for net in range(len(source)):
            inside = 0
            for at in range(pin_start[net], pin_start[net + 1]):
                inside += members[highs[i], pin[at]] and not members[low, pin[at]]
            if inside > 0 and (members[low, source[net]] or not members[highs[i], source[net]]):
                total[i] += enter[net]
            elif inside > 0 and inside < pin_start[net + 1] - pin_start[net]:
                total[i] += leave[net]
    return total


def end_costs(share: Bools, nets: Nets, enter: Floats, leave: Floats) -> Floats:
    """Return the costs of the nets across the ends of a segment, at a supernode whose stage pays each, (n,).

    That supernode is the maker of a net that leaves, and the last reader of a net that enters.
    """
    pins, made = nets.pins, share[nets.source]
    held = share[pins.items]
    reader = np.maximum.reduceat(np.where(held, pins.items, -1), pins.start[:-1])
    outside = ~np.logical_and.reduceat(held, pins.start[:-1])
    pays = (reader >= 0) & (outside | ~made)
    cost = np.where(made, leave, enter)[pays]
    return np.bincount(np.where(made, nets.source, reader)[pays], cost, len(share)).astype(np.float64)


class Weights:
    """The weights of the relaxation over the ideals of a lattice.

    Attributes
    ----------
    members
        Shape (I, n): the supernodes of every ideal.
    remaining
        Shape (I,): the weight of the supernodes outside an ideal.
    price
        The least share of the joint capacity that a transfer of cost 1 takes.
    cut
        Shape (I,): the cost of the nets that have pins inside and outside an ideal.
    """

    def __init__(
        self,
        problem: PipelineProblem,
        relaxation: Relaxation,
        lattice: Lattice,
        members: Bools,
        layout: GroupLayout,
    ) -> None:
        self.problem, self.relaxation, self.members, self.layout = problem, relaxation, members, layout
        self.remaining = remaining_weights(lattice, relaxation.weight)
        self.price = self._transfer_weight()
        self.cut = self._segment_costs(0, np.arange(lattice.size), problem.nets.cost, problem.nets.cost)

    def capacity(self, free: Ints, threshold: float) -> Floats:
        """Return the weight that free devices, shape (..., K), can take at loads up to a threshold."""
        capacity = self.relaxation.capacity(threshold, np.maximum(free, 0), self.problem.memory)
        return np.asarray(capacity + SLACK * (self.relaxation.weight.sum() + capacity))

    def between(self, share: Bools, prices: Prices) -> Floats:
        """Return the weights of supernodes, (n,), plus those of transfers over the ends of a segment."""
        if not self.price:
            return self.relaxation.weight
        nets = self.problem.nets
        enter, leave = nets.cost * prices.enter, nets.cost * prices.leave
        return np.asarray(self.relaxation.weight + self.price * end_costs(share, nets, enter, leave))

    def too_heavy(self, low: int, highs: Ints, prices: Prices, rest: int, threshold: float) -> Bools:
        """Return for each of `highs` whether a segment is too heavy for its group, or the rest for `rest`.

        Parameters
        ----------
        low, highs
            The ideal at which the segment starts, and those at which it may end.
        prices
            The prices of nets that cross its ends.
        rest
            The number of groups that are left after it.
        threshold
            The largest load.
        """
        weight, nets = self.remaining, self.problem.nets
        enter, leave = nets.cost * prices.enter, nets.cost * prices.leave
        ends = self._segment_costs(low, highs, enter, leave)
        here = weight[low] - weight[highs] + self.price * ends
        after = weight[highs] + self.price * self.layout.slowdown[0] * self.cut[highs]
        group, others = self.capacity(np.array([[1], [rest]]) * self.layout.size, threshold)
        return np.asarray((here > group) | (after > others))

    def _segment_costs(self, low: int, highs: Ints, enter: Floats, leave: Floats) -> Floats:
        pins, source = self.problem.nets.pins, self.problem.nets.source
        return np.asarray(
            segment_costs(self.members, low, highs, pins.start, pins.items, source, enter, leave)
        )

    def _transfer_weight(self) -> float:
        if self.problem.communication != "sequential":
            return 0.0
        return float((self.relaxation.time_price * self.problem.transfer_factor)[self.layout.size > 0].min())
