"""The memory of states: the same ideal is not reached again with no fewer devices, compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True)
def slot_of(pool, key, ideal):
    """Return the slot of the states with this ideal, shape (W,), or the empty slot where they belong."""
    mask = len(pool.slot) - 1
    place = np.int64(key & np.uint64(mask))
    while True:
        state = pool.slot[place]
        if state < 0:
            return place
        if pool.key[state] == key:
            same = True
            for w in range(len(ideal)):
                if pool.ideal[state, w] != ideal[w]:
                    same = False
                    break
            if same:
                return place
        place = (place + 1) & mask


@njit(cache=True)
def dominated(pool, left, first, used):
    """Whether one of the states alike, from `first` on, leaves no fewer devices of any kind than `used`."""
    state = first
    while state >= 0:
        mine = pool.used[state]
        no_fewer = True
        for k in range(left.shape[1]):
            if left[mine, k] < left[used, k]:
                no_fewer = False
                break
        if no_fewer:
            return True
        state = pool.alike[state]
    return False


@njit(cache=True, nogil=True)
def fill_slots(pool, count):
    """Enter the first `count` states in the slots, which are empty."""
    for state in range(count):
        place = slot_of(pool, pool.key[state], pool.ideal[state])
        pool.alike[state] = pool.slot[place]
        pool.slot[place] = state
