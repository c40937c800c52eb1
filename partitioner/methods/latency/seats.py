"""The seats of nodes: the subgraphs of devices that pay for transfers, and the devices that do not pay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.path import best_times, heads
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import SampleProblem

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Seats:
    """All seats, device by device, and on each device in the order in which its subgraphs run.

    Parameters
    ----------
    device, kind
        Shape (seats,): the device and its kind.
    backward
        Shape (seats,): True for subgraphs of the backward pass.
    slot
        Shape (seats,): the index among the subgraphs of the device and pass.
    pays
        Shape (seats,): whether the seat is a subgraph; otherwise its nodes run one by one.
    open
        Shape (n, seats): whether the node may be at the seat.
    """

    device: Ints
    kind: Ints
    backward: Mask
    slot: Ints
    pays: Mask
    open: Mask

    def __len__(self) -> int:
        return len(self.device)

    def layout(self, seat: Ints) -> SubgraphLayout:
        """Return the layout in which node v is at ``seat[v]``."""
        return SubgraphLayout(self.device[seat], self.slot[seat])


def seats_of(problem: SampleProblem, cutoff: float = np.inf) -> Seats:
    """Return all seats, and which node may be at which so that the value is at most `cutoff`.

    Of the devices of a kind that does not pay, only the first one is a seat if it can hold everything. Of the
    groups that a kind may run, the j-th largest is on one of its first j devices, as equal devices can be
    exchanged.
    """
    passes = [False, True] if problem.backward.any() else [False]
    rows = []
    for d, k in enumerate(device_kinds(problem).tolist()):
        i = d - int(np.searchsorted(device_kinds(problem), k))
        if problem.pays[k]:
            rows += [(d, k, i, p, s) for p in passes for s in range(problem.subgraphs)]
        elif i == 0 or problem.memory[k] < problem.size.sum():
            rows.append((d, k, i, False, 0))
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    device, kind, index, backward, slot = (table[:, i] for i in range(5))
    pays = problem.pays[kind]
    may = _open(problem, cutoff).T[:, kind] & (index <= _canonical(problem).T[:, kind])
    may &= ~pays | (problem.backward[:, None] == backward.astype(bool))
    return Seats(device, kind, backward.astype(bool), slot, pays, may)


def heads_and_tails(problem: SampleProblem) -> tuple[Floats, Floats]:
    """Return the longest path that ends with each node, and the one that follows it, shape (n,) each."""
    best, tail = best_times(problem), np.zeros(problem.n)
    for v in reversed(range(problem.n)):
        after = problem.successors.row(v)
        tail[v] = (tail[after] + best[after]).max(initial=0.0)
    return heads(problem), tail


def _open(problem: SampleProblem, cutoff: float) -> Mask:
    """Return whether the node's group may run on the kind, with a path up to the cutoff, shape (K, n)."""
    head, tail = heads_and_tails(problem)
    with np.errstate(invalid="ignore"):
        detour = problem.work() + (head - best_times(problem) + tail)
    fits = problem.allowed & (detour <= cutoff * (1 + 1e-9)) & (problem.size <= problem.memory[:, None])
    together = np.ones((len(fits), problem.group.max(initial=-1) + 1), dtype=bool)
    for k, row in enumerate(fits):
        np.logical_and.at(together[k], problem.group, row)
    return together[:, problem.group]


def _canonical(problem: SampleProblem) -> Ints:
    """Return the highest index of a device of each kind that the node's group needs, shape (K, n)."""
    size = np.bincount(problem.group, problem.size)
    order = np.argsort(-size, kind="stable")
    rank = np.empty((len(problem.count), len(order)), dtype=np.int64)
    for k in range(len(rank)):
        runs = np.zeros(len(order), dtype=bool)
        runs[problem.group[problem.allowed[k]]] = True
        rank[k, order] = np.maximum(np.cumsum(runs[order]) - 1, 0)
    return rank[:, problem.group]
