"""The arrays of partial chains, and of what a search for chains over many kinds of devices is given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Bools, Floats, Ints

BITS = 60  # supernodes in each word of a set
BUSY, SIZE, INTO, OUT, STAY, REST, SPARE = range(7)  # columns of `PartialChains.real`


class PartialChains(NamedTuple):
    """Partial chains of equally many supernodes, one a row: K kinds, sets in W words of 60 bits.

    A partial chain ends in a stage that may still grow, the open one.

    Parameters
    ----------
    held
        Shape (C, 3 W): the supernodes of the chain; those that can follow; those of its closed stages.
    used
        Shape (C, K): how many devices of each kind are used, with that of the open stage.
    kind
        Shape (C,): that of the open stage; -1 for the empty chain.
    real
        Shape (C, 7): of the open stage processing time, memory, transfers in, out and of nets that stay
        cut; the weight of all other supernodes; the capacity of the devices that are not used.
    key
        Shape (C, 3): hashes of the supernodes, of those of the closed stages, and of all that is compared.
    score
        Shape (C,): the weight of the rest as a fraction of the capacity that is left.
    parent, node, opened
        Shape (C,): the partial chain that was extended, by which supernode, and whether in a new stage.
    """

    held: Ints
    used: NDArray[np.int16]
    kind: NDArray[np.int16]
    real: Floats
    key: Ints
    score: Floats
    parent: NDArray[np.int32]
    node: NDArray[np.int32]
    opened: Bools

    @property
    def room(self) -> int:
        """How many partial chains the arrays hold."""
        return len(self.kind)

    def best(self, count: int, most: int) -> PartialChains:
        """Return copies of the first `count` rows, or of the `most` ones of least score among these."""
        kept: Ints | slice = slice(count)
        if count > most:
            kept = np.argpartition(self.score[:count], most)[:most]
        return PartialChains._make(array[kept].copy() for array in self)

    def grown(self) -> PartialChains:
        """Return the rows in arrays of twice the room."""
        return PartialChains._make(np.concatenate((array, np.empty_like(array))) for array in self)


class Network(NamedTuple):
    """Supernodes and nets: most fields are as in ``StageModel`` and ``Problem``.

    Parameters
    ----------
    most
        Shape (K,): how many devices of each kind there are.
    before_start, before, after_start, after, pin_start, pin
        Rows over supernodes, what comes before and after each; and rows over nets, the pins of each.
    growth
        Shape (K, n): as in ``ChainSearchSpec``.
    code
        Shape (n,): random numbers, whose exclusive or is the hash of a set.
    """

    work: Floats
    size: Floats
    memory: Floats
    transfer_factor: Floats
    communication: int
    most: Ints
    before_start: Ints
    before: Ints
    after_start: Ints
    after: Ints
    net_start: Ints
    net: Ints
    pin_start: Ints
    pin: Ints
    source: Ints
    growth: Floats
    code: Ints


class Threshold(NamedTuple):
    """What one search is given: the largest load of a stage and the bounds that follow from it.

    Parameters
    ----------
    load
        Only stages of at most this load count.
    cost
        Shape (nets,): the cost of each net, clipped to twice the threshold.
    rows
        Whether there is a row of prices for every set of kinds; else there is one for all.
    time_price, memory_price, capacity
        Shape (rows, K): the prices, and what a device can take at the threshold.
    weight
        Shape (rows, n): the least cost of each supernode on any kind of the set.
    """

    load: float
    cost: Floats
    rows: bool
    time_price: Floats
    memory_price: Floats
    capacity: Floats
    weight: Floats


def empty_chains(room: int, words: int, kinds: int) -> PartialChains:
    """Return arrays for `room` partial chains, not filled."""
    return PartialChains(
        held=np.empty((room, 3 * words), np.int64),
        used=np.empty((room, kinds), np.int16),
        kind=np.empty(room, np.int16),
        real=np.empty((room, 7), np.float64),
        key=np.empty((room, 3), np.int64),
        score=np.empty(room, np.float64),
        parent=np.empty(room, np.int32),
        node=np.empty(room, np.int32),
        opened=np.empty(room, np.bool_),
    )
