"""The weights of segments, by which those too heavy for the devices of their groups are ruled out."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.methods.dp.pipeline.levels.cuts import cut_costs, end_costs, segment_costs
from partitioner.methods.dp.pipeline.levels.layout import GroupLayout
from partitioner.methods.dp.pipeline.levels.prices import Prices
from partitioner.methods.dp.pipeline.tables import SLACK
from partitioner.methods.dp.stages import costs_of
from partitioner.methods.dp.weights import remaining_weights
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import PipelineProblem


class Weights:
    """The weights of the relaxation over the ideals of a lattice.

    Attributes
    ----------
    remaining
        Shape (I,): the weight of the supernodes outside an ideal.
    price
        The least share of the joint capacity that a transfer of cost 1 takes.
    """

    def __init__(
        self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice, layout: GroupLayout
    ) -> None:
        self.problem, self.relaxation, self.layout = problem, relaxation, layout
        self.remaining = remaining_weights(lattice, relaxation.weight)
        self.price = self._transfer_weight()
        costs = costs_of(problem)
        pins = costs.pins, costs.enter
        self.cut = cut_costs(lattice.parent, lattice.added, costs.net_start, costs.net, *pins)

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
        ends = end_costs(share, nets.pins.start, nets.pins.items, nets.source, enter, leave)
        return np.asarray(self.relaxation.weight + self.price * ends)

    def too_heavy(
        self, members: Bools, low: int, highs: Ints, prices: Prices, rest: int, threshold: float
    ) -> Bools:
        """Return for each of `highs` whether a segment is too heavy for its group, or the rest for `rest`.

        Parameters
        ----------
        members
            Shape (I, n): the supernodes of every ideal.
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
        ends = segment_costs(members, low, highs, nets.pins.start, nets.pins.items, nets.source, enter, leave)
        here = weight[low] - weight[highs] + self.price * ends
        after = weight[highs] + self.price * self.layout.slowdown[0] * self.cut[highs]
        group, others = self.capacity(np.array([[1], [rest]]) * self.layout.size, threshold)
        return np.asarray((here > group) | (after > others))

    def _transfer_weight(self) -> float:
        if self.problem.communication != "sequential":
            return 0.0
        return float((self.relaxation.time_price * self.problem.transfer_factor)[self.layout.size > 0].min())
