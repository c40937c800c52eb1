"""The arrays that the compiled walk over explicit groups reads and writes.

There are G groups, K kinds, each of which is in one group, I ideals and S states of devices in use. A *pair*
of groups is numbered ``first * G + second``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.dp.pipeline.arrays import Ints32
from partitioner.problem.arrays import Floats, Ints


class LinkCosts(NamedTuple):
    """The links, and how a tensor is priced whose other end may be in one of several stages.

    Parameters
    ----------
    group
        Shape (K,): the group of every kind.
    link
        Shape (G, G): the factor on the cost of a transfer between two groups.
    unknown
        Shape (G,): the factor between a group and a stage whose group is not known: the least one, which
        makes values lower bounds, or the largest one, which makes them upper bounds.
    upper
        Whether values are upper bounds.
    below, one_below, one_above
        Shape (I,): the supernodes whose removal leaves an ideal: how many there are, and the only one, -1
        if there are several; and the only one that may follow it, -1 if there are several.
    """

    group: Ints
    link: Floats
    unknown: Floats
    upper: bool
    one_below: Ints
    one_above: Ints


class LinkedTable(NamedTuple):
    """The table, shape (I, G * G, S) each: by ideal, pair of groups and state.

    The first group of the pair is that of the last stage, the second one that of the next stage. Both are 0
    for the empty ideal; the second one is 0 for the full ideal.

    Parameters
    ----------
    value
        The smallest value of stages that hold an ideal, infinity if there are none.
    origin, kind, copies
        The ideal before the stage placed last, and the kind and the number of its devices.
    before
        The group of the stage before that one.
    """

    value: Floats
    origin: Ints32
    kind: NDArray[np.int16]
    copies: Ints32
    before: NDArray[np.int16]
