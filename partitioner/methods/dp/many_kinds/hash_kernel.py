"""Compiled: hash tables of partial chains, which tell where chains are equal or dominate one another."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.methods.dp.many_kinds.arrays import BUSY, SIZE

SPREAD = 0x9E3779B97F4A7C15 - 2**64  # odd, so that a product with it spreads over the bits


@njit(cache=True)
def is_new(held, used, key, i, words, closed):
    """Whether no chain of the same supernodes and devices is in table `closed`; chain `i` is entered then."""
    mask = len(closed) - 1
    mixed = key[i, 0] * SPREAD
    for other in range(used.shape[1]):
        mixed = (mixed ^ (mixed >> 29) ^ used[i, other]) * SPREAD
    slot = (mixed ^ (mixed >> 31)) & mask
    while closed[slot] >= 0:
        j = closed[slot]
        same = key[j, 0] == key[i, 0]
        for other in range(used.shape[1]):
            same = same and used[j, other] == used[i, other]
        for word in range(words):
            same = same and held[j, word] == held[i, word]
        if same:
            return False
        slot = (slot + 1) & mask
    closed[slot] = i
    return True


@njit(cache=True)
def find_place(held, used, kind, real, key, sets, uses, k, figures, mixed, slots, count):
    """Return the row to write a chain to: that of a chain that it dominates, or `count`; -1 if dominated.

    Chains are compared if they have the same supernodes, devices and kind of the last stage, and if that kind
    pays for transfers, the same last stage. Then the one with less time and memory dominates.
    """
    mask = len(slots) - 1
    slot = mixed & mask
    while slots[slot] >= 0:
        j = slots[slot]
        slot = (slot + 1) & mask
        same = key[j, 2] == mixed and kind[j] == k
        if same:
            for each in range(len(sets)):
                same = same and held[j, each] == sets[each]
            for other in range(len(uses)):
                same = same and used[j, other] == uses[other]
        if same:
            if real[j, BUSY] <= figures[BUSY] and real[j, SIZE] <= figures[SIZE]:
                return -1
            if real[j, BUSY] >= figures[BUSY] and real[j, SIZE] >= figures[SIZE]:
                return j
    slots[slot] = count
    return count


@njit(cache=True, nogil=True)
def enter(key, count, slots):
    """Enter rows 0 to `count` - 1 of labels in an empty hash table."""
    mask = len(slots) - 1
    for j in range(count):
        slot = key[j, 2] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = j
