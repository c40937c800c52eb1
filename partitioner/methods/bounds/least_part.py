"""A lower bound on the largest load: the least load of any part that a given supernode can be in.

Some device holds supernode v, so the largest load is at least the least load of a part with v. Without any
rule on parts but where supernodes may run, the load of a part is the time of its supernodes and the cost of
the nets that it cuts, so that the least load is a minimum cut: the side of v is the part, each of its
supernodes is joined to the sink by its time, and each net is two nodes, joined by its cost.

Without it the proof of 2 of the 16 published free splits takes 4 times as long (scripts/ablations.py).
"""

from __future__ import annotations

import numpy as np
from ortools.graph.python.max_flow import SimpleMaxFlow

from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem

MOST_CUTS = 32  # what is found after that is rarely better
MOST_PINS = 20_000  # a cut of a larger graph takes too long
SUM = 2.0**50  # of all times and costs, as whole numbers
ROUNDING = 1 - 1e-12


def least_part(problem: Problem, settings: Settings, known: float) -> float:
    """Return the largest of the least loads of parts with some supernode; `known` if no larger one is found.

    Supernodes are tried in order of the least loads of parts that are known, as every part bounds the least
    load of all its supernodes.

    Parameters
    ----------
    problem
        Without replicas, levels and schedules; other problems, and models of communication in which
        transfers and processing do not add up, have no such bound.
    settings
        Say when the run must end.
    known
        A lower bound.
    """
    additive = problem.communication == "sequential" and problem.measure.passes == 1
    if problem.pipeline is not None or not additive or len(problem.nets.pins.items) > MOST_PINS:
        return known
    cuts = _Cuts(problem.relaxed)
    for _ in range(MOST_CUTS):
        v = int(np.argmax(cuts.least.min(axis=0)))
        if cuts.least[:, v].min() * ROUNDING <= known or settings.expired:
            break
        known = max(known, cuts.tightened(v, known) * ROUNDING)
    return known


class _Cuts:
    """Minimum cuts for each kind with devices.

    Attributes
    ----------
    least
        Shape (k, n): the load of the best part known with each supernode on each kind; infinity where it may
        not run.
    """

    def __init__(self, problem: Problem) -> None:
        kinds = np.flatnonzero(problem.count)
        self.time, self.n = problem.work()[kinds], problem.n
        self.cost = np.multiply.outer(problem.transfer_factor[kinds], problem.nets.cost)
        pins, count = problem.nets.pins, len(problem.nets.cost)
        self.pin, self.net = pins.items, np.repeat(np.arange(count), np.diff(pins.start))
        self.least = np.array([self._alone(k) for k in range(len(kinds))])

    def tightened(self, v: int, known: float) -> float:
        """Return the least load of a part with supernode v, or one that is not above a known bound."""
        for k in np.argsort(self.least[:, v]).tolist():
            if self.cost[k].any() and np.isfinite(self.least[k, v]):
                load, part = self._cut(k, v)
                self.least[k, part] = np.minimum(self.least[k, part], load)
                self.least[k, v] = load
            if self.least[k, v] <= known:
                break
        return float(self.least[:, v].min())

    def _alone(self, k: int) -> Floats:
        """Return the load of each supernode alone on a kind, shape (n,)."""
        return np.asarray(self.time[k] + np.bincount(self.pin, self.cost[k][self.net], self.n))

    def _cut(self, k: int, v: int) -> tuple[float, Ints]:
        """Return the least load of a part with supernode v on a kind, rounded down, and that part."""
        time, cost, nets = self.time[k], self.cost[k], len(self.cost[k])
        scale = SUM / (time[np.isfinite(time)].sum() + cost.sum())
        entry, sink = self.n + np.arange(nets), self.n + 2 * nets
        whole_time, whole_cost = (np.floor(np.minimum(each * scale, SUM)) for each in (time, cost))
        arcs = (
            (np.arange(self.n), np.full(self.n, sink), whole_time),
            (entry, entry + nets, whole_cost),
            (self.pin, entry[self.net], whole_cost[self.net]),
            (entry[self.net] + nets, self.pin, whole_cost[self.net]),
        )
        tails, heads, capacities = (np.concatenate(column) for column in zip(*arcs, strict=True))
        flow = SimpleMaxFlow()
        flow.add_arcs_with_capacity(
            tails.astype(np.int32), heads.astype(np.int32), capacities.astype(np.int64)
        )
        flow.solve(v, sink)
        side = np.array(flow.get_source_side_min_cut(), dtype=np.int64)
        return flow.optimal_flow() / scale, side[side < self.n]
