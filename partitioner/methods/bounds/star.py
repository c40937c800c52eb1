"""A lower bound on the largest load by the supernode whose tensors cost most, and those around it.

Let v be on a device of kind k, and let T be the largest load. Each net of v is given to one other pin u. It
is torn if u is elsewhere, and costs c_u together with the other nets given to u, on the device of v and on
that of u. With x_u = 1 where u is with v, and the prices a, b of the relaxation,

    time_kv + sum over u of  x_u time_ku + (1 - x_u) factor_k c_u  <=  T
    sum over u of  (1 - x_u) w_u  <=  what the other devices offer at T
    w_u = min over kinds j of (a_j (time_ju + factor_j c_u) + b_j size_u).

Which x_u leave least to the others is a fractional knapsack. The bound is the least T for which that is
little enough, on the best kind k. Three nodes that take 4 each send tensors that cost 3 to a fourth one that
takes 1, on 4 equal devices. Alone it takes 1 + 3 + 3 + 3 = 10, with one of the others 1 + 4 + 3 + 3 = 11, so
that the bound is 10; without transfers it is 4.

Where a sink reads 20,000 tensors the gap is 0.04 % with it on 4 and on 8 devices, and 14 and 35 % without it
(``tests/large_graphs.py``, star_in).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK, Relaxation, fullest, relax
from partitioner.methods.halving import Halving
from partitioner.problem.arrays import Floats
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem

NEAR = 1e-4  # of a bound: the precision with which it is found
MOST = 1e9  # times a bound is the highest threshold that is tried
LEAST = 1e-3  # of a bound: what nets must cost together to matter


def star_bound(problem: Problem, relaxation: Relaxation) -> float:
    """Return the larger one of the relaxation's bound and that by the supernode whose nets cost most.

    Parameters
    ----------
    problem
        Without replicas, levels and schedules; other problems, and models of communication in which
        transfers and processing do not add up, have no such bound.
    relaxation
        The relaxation of the problem.

    Examples
    --------
    >>> from partitioner import Devices, Graph
    >>> from partitioner.methods.bounds.relaxation import relax
    >>> from partitioner.problem.contract import contract
    >>> edges = [(0, 3), (1, 3), (2, 3)]
    >>> star = Graph.from_arrays({"accelerator": [4.0, 4.0, 4.0, 1.0]}, edges, [3.0, 3.0, 3.0])
    >>> problem = contract(star, Devices.accelerated(4))
    >>> relaxation = relax(problem)
    >>> relaxation.bound, round(star_bound(problem, relaxation), 2)
    (4.0, 10.0)
    """
    known = relaxation.bound
    additive = problem.communication == "sequential" and problem.measure is Measure.LARGEST_LOAD
    if problem.pipeline is not None or not additive or not 0 < known < np.inf:
        return known
    problem, nets = problem.relaxed, problem.nets
    cost = np.repeat(nets.cost, np.diff(nets.pins.start))
    total = np.bincount(nets.pins.items, cost, problem.n)
    centre = int(total.argmax())
    if total[centre] * problem.transfer_factor.max() <= LEAST * known:
        return known
    least = min(star.least(known) for star in _stars(problem, centre))
    return least if np.isfinite(least) else known


@dataclass(frozen=True, eq=False)
class _Star:
    """The supernodes around one that is on a device of some kind.

    Parameters
    ----------
    problem, relaxation
        The problem, and the relaxation in which a supernode elsewhere pays for the nets given to it.
    kind
        The kind of the device.
    least_load
        The load of the device if it holds only the centre.
    more, weight
        Shape (n,): by how much each other supernode raises the load, which may be negative; and what it
        takes of the other devices if it is elsewhere. The centre cannot be added.
    """

    problem: Problem
    relaxation: Relaxation
    kind: int
    least_load: float
    more: Floats
    weight: Floats

    def least(self, known: float) -> float:
        """Return the least largest load, rounded down; at least `known`, infinity if none is found."""
        high = known
        while not self._fits(high):
            high *= 2
            if high > known * MOST:
                return np.inf
        halving = Halving(known, high)
        for threshold in halving.thresholds(NEAR * known):
            halving.learn(threshold, 0.0 if self._fits(threshold) else np.inf)
        return halving.bound

    def _fits(self, threshold: float) -> bool:
        """Whether the devices may hold all supernodes within a threshold."""
        room = threshold - self.least_load - self.more[self.more < 0].sum()
        if room < -SLACK * threshold:
            return False
        elsewhere = self.weight - fullest(self.more, self.weight, max(room, 0.0)) * self.weight
        left = self.problem.count.copy()
        left[self.kind] -= 1
        offered = float(self.relaxation.capacity(threshold, left, self.problem.memory))
        return float(elsewhere.sum()) <= offered + SLACK * float(self.weight.sum())


def _stars(problem: Problem, centre: int) -> list[_Star]:
    """Return the star around a supernode on every kind of device that may run it."""
    given, work = _given(problem, centre), problem.work()
    paid = problem.time.copy()
    paid[:, 0] += np.multiply.outer(problem.transfer_factor, given)
    relaxation = relax(replace(problem, time=paid))
    weight = relaxation.weight.copy()
    weight[centre] = 0.0
    stars = []
    for kind in np.flatnonzero(problem.count * problem.allowed[:, centre]).tolist():
        transfers = problem.transfer_factor[kind] * given
        more = work[kind] - transfers
        more[centre] = np.inf
        least_load = float(work[kind, centre] + transfers.sum())
        stars.append(_Star(problem, relaxation, kind, least_load, more, weight))
    return stars


def _given(problem: Problem, centre: int) -> Floats:
    """Return the cost of the nets of a supernode that each other one is given: the pin with most work."""
    work, given = problem.time.sum(axis=(0, 1)), np.zeros(problem.n)
    for net in problem.nets.of_node.row(centre).tolist():
        others = problem.nets.pins.row(net)
        others = others[others != centre]
        given[others[work[others].argmax()]] += problem.nets.cost[net]
    return given
