"""The arrays of the search: the stages within a threshold, prices, and the pipelines that end with one.

There are I ideals, K kinds, each of which is in one of G groups, and R stages. A stage of few supernodes, at
most `window`, counts as one in a group of its own, so that there are 2 G groups unless the window is 0. In a
*mask* each of these is one bit. The devices in use are counted by kind, and the stages if their number is
fixed; the counts are packed in W words, so that one subtraction compares all counts of a word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Ints16, Ints32
from partitioner.problem.arrays import Floats, Ints


class StageList(NamedTuple):
    """The stages whose load may keep to a threshold; those that begin at one ideal follow one another.

    Parameters
    ----------
    first
        Shape (I + 1,): the first stage that begins at an ideal.
    to, kind, group, copies
        Shape (R,): the ideal with the stage, its kind of device, its group and how many devices it has.
    behind
        Shape (R,): the most devices that may be behind the stage, by its memory.
    mask
        Shape (R, G): the groups in which the next stage may be, by the group of the stage before. Of stages
        that begin at the empty ideal only the first mask counts; that of the last stage of all is 1.
    """

    first: Ints
    to: Ints32
    kind: Ints16
    group: Ints16
    copies: Ints32
    behind: Ints32
    mask: Ints

    def grown(self) -> StageList:
        """Return the stages in arrays of twice the room."""
        larger = (np.concatenate((array, np.empty_like(array))) for array in self[1:])
        return StageList._make((self.first, *larger))


class DeviceCounts(NamedTuple):
    """How devices in use are counted and packed.

    Parameters
    ----------
    word, shift
        Shape (K + 1,): where the count of each kind is, and the number of stages behind them.
    most, bits
        Shape (K + 1,): the largest counts, 0 for the number of stages if it is not counted; and as many ones
        as a count has bits.
    guard
        Shape (W,): a bit above each count.
    exact
        Whether all these counts must be reached in the end; then fewer devices are not better.
    """

    word: Ints
    shift: Ints
    most: Ints
    bits: Ints
    guard: Ints
    exact: bool


class PartialPool(NamedTuple):
    """Pipelines that hold an ideal, room for P of them.

    Parameters
    ----------
    ideal
        Shape (P,): the ideal that the pipeline holds.
    used
        Shape (P, W): the packed counts of the devices in use.
    mask, last
        Shape (P,): the groups in which the next stage may be, and the group of the last stage.
    behind
        Shape (P,): how many devices are in use.
    spare, slack
        Shape (P,): the price of the devices that are not in use, and by how much it exceeds the least price
        of what is still needed.
    parent, stage, other
        Shape (P,): the pipeline before the last stage, the last stage, and the next pipeline with the ideal.
    slot
        A pipeline for each hash value, or -1; a power of two of them.
    head, members, check
        Shape (I,): a pipeline with each ideal, or -1; how many there are; and how many there may be before
        the worst ones are left out.
    cutoff
        Shape (I,): the least slack of a pipeline with each ideal that is kept.
    """

    ideal: Ints32
    used: Ints
    mask: Ints
    last: Ints16
    behind: Ints32
    spare: Floats
    slack: Floats
    parent: Ints32
    stage: Ints32
    other: Ints32
    slot: Ints32
    head: Ints32
    members: Ints
    check: Ints
    cutoff: Floats

    def grown(self) -> PartialPool:
        """Return the pool in arrays of twice the room, with empty slots."""
        rows = (np.concatenate((array, np.empty_like(array))) for array in self[:-5])
        slot = np.full(2 * len(self.slot), -1, np.int32)
        return PartialPool._make((*rows, slot, *self[-4:]))


def empty_stages(ideals: int, groups: int, room: int) -> StageList:
    """Return arrays for `room` stages, not filled."""
    return StageList(
        first=np.zeros(ideals + 1, np.int64),
        to=np.empty(room, np.int32),
        kind=np.empty(room, np.int16),
        group=np.empty(room, np.int16),
        copies=np.empty(room, np.int32),
        behind=np.empty(room, np.int32),
        mask=np.empty((room, groups), np.int64),
    )


def empty_pool(ideals: int, words: int, room: int, width: int) -> PartialPool:
    """Return a pool for `room` pipelines in which each ideal keeps about `width`."""
    return PartialPool(
        ideal=np.empty(room, np.int32),
        used=np.empty((room, words), np.int64),
        mask=np.empty(room, np.int64),
        last=np.empty(room, np.int16),
        behind=np.empty(room, np.int32),
        spare=np.empty(room),
        slack=np.empty(room),
        parent=np.full(room, -1, np.int32),
        stage=np.full(room, -1, np.int32),
        other=np.full(room, -1, np.int32),
        slot=np.full(1 << int(2 * room).bit_length(), -1, np.int32),
        head=np.full(ideals, -1, np.int32),
        members=np.zeros(ideals, np.int64),
        check=np.full(ideals, 4 * width, np.int64),
        cutoff=np.full(ideals, -np.inf),
    )


def packed(most: Ints, exact: bool) -> DeviceCounts:
    """Return how counts up to `most` are packed in words of at most 60 bits.

    Examples
    --------
    >>> packed(np.array([3, 3, 0]), exact=False).shift.tolist()
    [0, 3, 6]
    """
    word, shift, ones = np.zeros((3, len(most)), np.int64)
    guard, at, used = [0], 0, 0
    for i, largest in enumerate(most.tolist()):
        bits = int(largest).bit_length() + 1
        if used + bits > 60:
            guard.append(0)
            at, used = at + 1, 0
        word[i], shift[i], ones[i] = at, used, (1 << (bits - 1)) - 1
        guard[at] |= 1 << (used + bits - 1)
        used += bits
    return DeviceCounts(word, shift, most, ones, np.array(guard, dtype=np.int64), exact)
