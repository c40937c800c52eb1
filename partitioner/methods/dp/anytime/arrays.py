"""The named arrays that the compiled search reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.dp.arrays import Ints32
from partitioner.problem.arrays import Floats, Ints

Words = NDArray[np.uint64]
Ints8 = NDArray[np.int8]


class SearchGraph(NamedTuple):
    """The precedence in the direction of the search, of n supernodes.

    Parameters
    ----------
    after_start, after
        Rows over supernodes: those that directly follow each in this direction.
    before
        Shape (n,): how many supernodes directly precede each.
    order
        Shape (n,): all supernodes, those first that a stage takes first.
    hash
        Shape (n,): a random word for each supernode; the key of an ideal is the exclusive or of its words.
    """

    after_start: Ints
    after: Ints
    before: Ints
    order: Ints
    hash: Words


class Demand(NamedTuple):
    """What decides whether the rest of a graph can still fit the devices that are left, at one threshold.

    Parameters
    ----------
    threshold
        No load may exceed this.
    weight, capacity
        Shapes (B, n) and (B, S): B additive bounds; the supernodes outside an ideal must not weigh more than
        the capacity of the devices that a state leaves.
    toll
        Weight in the first bound that a net adds for each unit of its cost if it has supernodes both inside
        and outside the ideal.
    left, following
        Shapes (S, K): devices of each kind that a state leaves; the state with one more device of a kind in
        use, -1 if none is left.
    growth
        Shape (K, n): by how much a supernode may raise the load of a stage that takes it; infinity if that
        may raise the load of another stage, see :func:`partitioner.methods.dp.table.growth_of`.
    """

    threshold: float
    weight: Floats
    capacity: Floats
    toll: float
    left: Ints
    following: Ints
    growth: Floats


class Pool(NamedTuple):
    """The states found so far, room for P of them; a state is an ideal and the devices in use.

    Parameters
    ----------
    ideal
        Shape (P, W): the supernodes of the ideal as bits.
    key
        Shape (P,): the key of the ideal.
    used, kind, parent
        Shape (P,): the vector of devices in use, the kind of the last stage, and the state before it.
    priority
        Shape (P,): the least is expanded first among states with equally many stages.
    one, other
        Shape (P,): the two heaps below a state in the heap of its number of stages, -1 if empty.
    alike
        Shape (P,): another state with the same ideal, or -1.
    slot
        Shape (a power of two,): a state for each hash value, or -1.
    top
        Shape (most stages + 1,): the state on top of the heap of each number of stages, or -1.
    """

    ideal: Words
    key: Words
    used: Ints32
    kind: Ints8
    parent: Ints32
    priority: Floats
    one: Ints32
    other: Ints32
    alike: Ints32
    slot: Ints32
    top: Ints32


class Expansion(NamedTuple):
    """Work space for expanding one state; E nets, K kinds.

    Parameters
    ----------
    placed, missing
        Shape (n,): whether a supernode is in the ideal or the stage; how many that precede it are not.
    candidate
        Shape (n,): the supernodes that can follow, in the order in which the stage takes them.
    position, ready
        Shape (n + 2,): at each depth, the next candidate, and how many candidates there are.
    before, inside
        Shape (E,): pins of each net in the ideal, and in the stage.
    compute, size, transfer, weight
        Shapes (n + 2, K), (n + 2,), (n + 2, 3), (n + 2, B): of the stage at each depth; `transfer` as in
        :mod:`partitioner.methods.dp.kernel`.
    key
        Shape (n + 2,): the key of the ideal with the stage at each depth.
    """

    placed: NDArray[np.bool_]
    missing: Ints
    candidate: Ints
    position: Ints
    ready: Ints
    before: Ints
    inside: Ints
    compute: Floats
    size: Floats
    transfer: Floats
    weight: Floats
    key: Words
