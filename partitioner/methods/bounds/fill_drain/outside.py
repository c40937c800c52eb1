"""What the devices that are left can take of the supernodes outside an ideal."""

from __future__ import annotations

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.ideals import Lattice
from partitioner.problem.arrays import Bools, Floats, Ints


def held_of(lattice: Lattice, on: Bools) -> Ints:
    """Return how many of some supernodes each ideal holds, shape (I,); `on` has shape (n,)."""
    held = np.zeros(lattice.size, dtype=np.int64)
    for ideal in range(1, lattice.size):
        held[ideal] = held[lattice.parent[ideal]] + on[lattice.added[ideal]]
    return held


def less_in_series(relaxation: Relaxation, free: Ints, limit: float, samples: int) -> Floats:
    """Return by how much less devices can take in stages in series than they have capacity, shape (S,).

    If every stage waits for the ones before it, M times its load and their loads are together at most the
    limit. So k stages take at most the limit times 1 - (1 - 1/M)^k, and their weight is largest if the
    devices whose time has the largest price take the largest parts.

    Parameters
    ----------
    relaxation
        The relaxation that gives prices to the time of devices.
    free
        Shape (S, K): numbers of devices by kind.
    limit, samples
        The makespan that is allowed, and the number M of microbatches.
    """
    less, before = np.zeros(len(free)), np.zeros(len(free))
    for k in np.argsort(-relaxation.time_price).tolist():
        after = before + free[:, k]
        parts = (1 - 1 / samples) ** before - (1 - 1 / samples) ** after
        less += relaxation.time_price[k] * limit * (free[:, k] / samples - parts)
        before = after
    return less
