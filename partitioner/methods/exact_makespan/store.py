"""What the exact search remembers: partial schedules, so that it does not continue from a worse one.

Two partial schedules of the same tasks are compared if the tasks whose device matters are on the same devices,
up to exchanges of equal devices. One is no better than the other if none of its times is smaller and no device
has more memory left: everything that can follow it can also follow the other one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.exact_makespan.jobs import Jobs
from partitioner.methods.exact_makespan.path import NOWHERE, Path
from partitioner.problem.arrays import Floats, Ints

PRIME: int = np.int64(1_099_511_628_211)  # type: ignore[assignment]
WORDS, VALUES = 4, 16  # the space for a schedule, on average


class Store(NamedTuple):
    """Partial schedules by their keys.

    Parameters
    ----------
    first, link, stamp
        The last schedule of each hash, the one before it, and its full hash.
    keys, values
        The words of all keys and the times, one schedule after the other.
    key_at, value_at
        Where those of each schedule begin.
    used
        Shape (1,): how many schedules there are.
    key, value
        Scratch space for one schedule.
    """

    first: Ints
    link: Ints
    stamp: Ints
    keys: Ints
    values: Floats
    key_at: Ints
    value_at: Ints
    used: Ints
    key: Ints
    value: Floats


def new_store(jobs: Jobs, memory: int) -> Store:
    """Return a store that takes `memory` bytes at most; pages that are not written take none."""
    count, n = jobs.time.shape
    entries = max(1, memory // (8 * (WORDS + VALUES + 6)))
    buckets = 1 << max(1, entries.bit_length() - 1)
    return Store(
        first=np.zeros(buckets, dtype=np.int64),
        link=np.empty(entries, dtype=np.int64),
        stamp=np.empty(entries, dtype=np.int64),
        keys=np.empty(entries * WORDS, dtype=np.int64),
        values=np.empty(entries * VALUES),
        key_at=np.zeros(entries + 1, dtype=np.int64),
        value_at=np.zeros(entries + 1, dtype=np.int64),
        used=np.zeros(1, dtype=np.int64),
        key=np.empty(2 + n + count, dtype=np.int64),
        value=np.empty(1 + n + 2 * count),
    )


@njit(cache=True, nogil=True)
def is_new(jobs: Jobs, path: Path, k: int, store: Store) -> bool:
    """Store the partial schedule; return False if a stored one is as good."""
    words, values, stamp = _describe(jobs, path, k, store)
    bucket = stamp & (len(store.first) - 1)
    link, stamps, key_at, value_at = store.link, store.stamp, store.key_at, store.value_at
    key, keys, value, stored = store.key, store.keys, store.value, store.values
    entry = store.first[bucket] - 1
    while entry >= 0:
        if stamps[entry] == stamp and _is_at(key, words, keys, key_at[entry], key_at[entry + 1]):
            better, worse = _compare(value, values, stored, value_at[entry])
            if better:
                return False
            if worse:
                _copy(value, values, stored, value_at[entry])
                return True
        entry = link[entry]
    _add(store, bucket, stamp, words, values)
    return True


@njit(cache=True, nogil=True)
def _copy(source: Floats | Ints, count: int, target: Floats | Ints, at: int) -> None:
    for i in range(count):
        target[at + i] = source[i]


@njit(cache=True, nogil=True)
def _is_at(key: Ints, words: int, keys: Ints, begin: int, end: int) -> bool:
    """Whether the key of some words is stored from `begin` to `end`."""
    if end - begin != words:
        return False
    for i in range(words):
        if keys[begin + i] != key[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _compare(value: Floats, count: int, stored: Floats, at: int) -> tuple[bool, bool]:
    """Return whether none of the values stored from `at` on is larger, and whether none is smaller."""
    better, worse = True, True
    for i in range(count):
        better &= stored[at + i] <= value[i]
        worse &= stored[at + i] >= value[i]
        if not (better or worse):
            break
    return better, worse


@njit(cache=True, nogil=True)
def _add(store: Store, bucket: int, stamp: int, words: int, values: int) -> None:
    """Store the schedule in the scratch space, if there is room."""
    entry = store.used[0]
    if entry == len(store.link):
        return
    key_at, value_at = store.key_at[entry], store.value_at[entry]
    if key_at + words > len(store.keys) or value_at + values > len(store.values):
        return
    _copy(store.key, words, store.keys, key_at)
    _copy(store.value, values, store.values, value_at)
    store.key_at[entry + 1], store.value_at[entry + 1] = key_at + words, value_at + values
    store.stamp[entry], store.link[entry] = stamp, store.first[bucket] - 1
    store.first[bucket] = entry + 1
    store.used[0] = entry + 1


@njit(cache=True, nogil=True)
def _describe(jobs: Jobs, path: Path, k: int, store: Store) -> tuple[int, int, int]:
    """Write key and values of the partial schedule; return how many there are, and the hash of the key.

    The key is the set of the tasks placed, the set of those whose device matters, and for each of these the
    number of its device: devices are numbered as these tasks come, and each is given with its sort.
    """
    now, count = path.now[k], len(jobs.limit)
    placed, live = np.int64(0), np.int64(0)
    words, values = 2, 1
    store.value[0] = now
    for d in range(count):
        path.label[d] = NOWHERE
    used = 0
    for u in range(len(jobs.least)):
        if path.device[u] == NOWHERE:
            continue
        placed |= np.int64(1) << u
        if path.live[u]:
            live |= np.int64(1) << u
            d = path.device[u]
            if path.label[d] == NOWHERE:
                path.label[d] = used
                used += 1
                store.value[values], store.value[values + 1] = max(now, path.free[k, d]), -path.room[k, d]
                values += 2
            store.value[values] = path.finish[u]
            values += 1
            store.key[words] = path.label[d] * count + jobs.alike[d]
            words += 1
    values = _idle_devices(jobs, path, k, store, values)
    store.key[0], store.key[1] = placed, live
    stamp = np.int64(0)
    for i in range(words):
        stamp = (stamp ^ store.key[i]) * PRIME
        stamp ^= stamp >> 29
    return words, values, stamp


@njit(cache=True, nogil=True)
def _idle_devices(jobs: Jobs, path: Path, k: int, store: Store, values: int) -> int:
    """Write the values of the devices whose tasks do not matter, sorted among those that are alike."""
    now, count = path.now[k], len(jobs.limit)
    for sort in range(count):
        begin = values
        for d in range(count):
            if jobs.alike[d] == sort and path.label[d] == NOWHERE:
                free, owed, place = max(now, path.free[k, d]), -path.room[k, d], values
                while place > begin and store.value[place - 2] > free:
                    store.value[place], store.value[place + 1] = store.value[place - 2], store.value[place - 1]
                    place -= 2
                store.value[place], store.value[place + 1] = free, owed
                values += 2
    return values
