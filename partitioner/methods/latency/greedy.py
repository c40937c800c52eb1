"""Method ``greedy``: the paper's greedy split, which fills one accelerator after another (Appendix F)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from partitioner.methods.latency.layout import SubgraphLayout, latency, obeys, one_subgraph_each, outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.method import Outcome, Settings, meets, no_split
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import SampleProblem


def solve_greedy(problem: SampleProblem, settings: Settings) -> Outcome:
    """Place supernodes in a topological order, as many on each accelerator as fit: method ``greedy``."""
    bound = longest_path(problem)
    if np.isinf(bound):
        return no_split(problem)
    layout = fill(problem, file_order(problem))
    if layout is None:
        return outcome_of(problem, None, np.inf, bound, "heuristic")
    value = latency(problem, layout)
    return outcome_of(problem, layout, value, bound, "optimal" if meets(bound, value) else "heuristic")


def supernodes(problem: SampleProblem) -> Ints:
    """Return the supernode of the contraction for chains that holds each node, shape (n,)."""
    return np.asarray(problem.chain.member[np.argsort(problem.member)])


def file_order(problem: SampleProblem) -> list[int]:
    """Return a topological order of the supernodes.

    Of the supernodes that may come next, the one whose last node is latest in the user's graph comes first.
    """
    chain = problem.chain
    last = np.zeros(chain.n, dtype=np.int64)
    np.maximum.at(last, chain.member, np.arange(problem.n))
    after, missing = chain.successors.lists(), np.diff(chain.predecessors.start).tolist()
    key = (-last).tolist()
    ready = [(key[s], s) for s, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, s = heapq.heappop(ready)
        order.append(s)
        for t in after[s]:
            missing[t] -= 1
            if not missing[t]:
                heapq.heappush(ready, (key[t], t))
    return order


def fill(problem: SampleProblem, order: Sequence[int]) -> SubgraphLayout | None:
    """Place supernodes in a topological order; return None if some fit nowhere.

    A supernode that fits on no accelerator that is left, or may not run there, goes to a CPU. Successors of
    a supernode on a CPU go to accelerators behind all those that it depends on.

    Parameters
    ----------
    problem
        A problem for latency.
    order
        All supernodes of the contraction for chains.
    """
    stages = _Stages(problem)
    for s in order:
        if not stages.add(s):
            return None
    layout = one_subgraph_each(stages.place[supernodes(problem)])
    sound = obeys(problem, layout) and np.isfinite(latency(problem, layout))
    return layout if sound else None


class _Stages:
    """A row of accelerators that is being filled, with the memory that is left on each device."""

    def __init__(self, problem: SampleProblem) -> None:
        self.chain, kind = problem.chain, device_kinds(problem)
        pays = problem.pays[kind]
        self.row, self.cpus = np.flatnonzero(pays).tolist(), np.flatnonzero(~pays).tolist()
        member = supernodes(problem)
        self.size = np.bincount(member, problem.size, self.chain.n)
        self.allowed = np.ones((len(kind), self.chain.n), dtype=bool)
        np.logical_and.at(self.allowed.T, member, problem.allowed[kind].T)
        self.room: Floats = problem.memory[kind].copy()
        self.place = np.zeros(self.chain.n, dtype=np.int64)
        self.after = np.zeros(self.chain.n, dtype=np.int64)  # the first stage that successors may be on
        self.current = 0

    def add(self, s: int) -> bool:
        """Place a supernode; return False if it fits nowhere."""
        earliest = int(self.after[self.chain.predecessors.row(s)].max(initial=0))
        now = max(self.current, earliest)
        for stage in range(now, len(self.row)):
            if self._put(s, self.row[stage]):
                self.current = self.after[s] = stage
                return True
        if any(self._put(s, cpu) for cpu in self.cpus):
            below = [t for t in self.chain.predecessors.row(s).tolist() if self.place[t] in self.row]
            self.after[s] = max([earliest, *(self.after[t] + 1 for t in below)])
            return True
        for stage in range(earliest, now):
            if self._put(s, self.row[stage]):
                self.after[s] = stage
                return True
        return False

    def _put(self, s: int, device: int) -> bool:
        fits = bool(self.allowed[device, s]) and self.size[s] <= self.room[device]
        if fits:
            self.place[s] = device
            self.room[device] -= self.size[s]
        return fits
