"""The fewest contiguous subgraphs that a placement has on each device."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import SampleProblem
from partitioner.workload.graph import Bools


def fewest_subgraphs(problem: SampleProblem, device: Ints) -> Ints:
    """Return the index of every node's subgraph on its device, shape (n,), with as few subgraphs as possible.

    The subgraphs are contiguous (paper, Definition 3.1), and each is as early as possible: the index counts
    how often a path of the node's pass leaves its device before the node. It is 0 on devices that do not
    pay for transfers.

    Parameters
    ----------
    problem
        A problem for latency.
    device
        Shape (n,): the device of every node, numbered kind by kind.
    """
    slot = np.zeros(problem.n, dtype=np.int64)
    pays = problem.pays[device_kinds(problem)]
    for d in np.unique(device[pays[device]]).tolist():
        _count(problem.successors.start, problem.successors.items, problem.backward, device == d, slot)
    return slot


@njit(cache=True, nogil=True)
def _count(start: Ints, after: Ints, backward: Bools, here: Bools, slot: Ints) -> None:
    """Write the indices of the nodes on one device, for which `here` is True, to `slot`."""
    count = np.zeros(len(here), dtype=np.int64)
    for u in range(len(here)):
        if here[u]:
            slot[u] = count[u]
        for e in range(start[u], start[u + 1]):
            v = after[e]
            if backward[u] == backward[v]:
                left = 1 if here[u] and not here[v] else 0
                count[v] = max(count[v], count[u] + left)
