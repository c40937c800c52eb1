"""What the exact search remembers: partial schedules, so that it does not continue from a worse one.

Two partial schedules of the same tasks are compared if the tasks whose device matters are on the same
devices, up to exchanges of equal devices. One is no better than the other if none of its times is smaller and
no device has more memory left: everything that can follow it can also follow the other one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.exact_makespan.jobs import Jobs, Records, record
from partitioner.methods.exact_makespan.path import NOWHERE, Path
from partitioner.problem.arrays import Floats, Ints

PRIME: int = np.int64(1_099_511_628_211)  # type: ignore[assignment]
WORDS, VALUES = 4, 16  # the space for a schedule, on average
ENTRY = record("", "link stamp key_at value_at")


class Store(NamedTuple):
    """Partial schedules by their keys.

    Parameters
    ----------
    first
        The number of the last schedule of each hash, counted from 1; 0 if there is none.
    entry
        Of each schedule the one with the same hash before it (`link`, counted from 0), its full hash, and
        where its key and its values begin.
    keys, values
        The words of all keys, and all values: times, and memory that is taken.
    used
        Shape (1,): how many schedules there are.
    key, value
        Scratch space for one schedule.
    """

    first: Ints
    entry: Records
    keys: Ints
    values: Floats
    used: Ints
    key: Ints
    value: Floats


def new_store(jobs: Jobs, memory: int) -> Store:
    """Return a store that takes `memory` bytes at most; pages that are not written take none."""
    count, n = jobs.time.shape
    entries = max(1, memory // (8 * (WORDS + VALUES + 6)))
    return Store(
        first=np.zeros(1 << max(1, entries.bit_length() - 1), dtype=np.int64),
        entry=np.zeros(entries + 1, dtype=ENTRY),
        keys=np.empty(entries * WORDS, dtype=np.int64),
        values=np.empty(entries * VALUES),
        used=np.zeros(1, dtype=np.int64),
        key=np.empty(2 + n, dtype=np.int64),
        value=np.empty(1 + n + 2 * count),
    )


@njit(cache=True, inner=True)
def is_new(jobs: Jobs, path: Path, k: int, store: Store) -> bool:
    """Store the partial schedule; return False if a stored one is as good."""
    words, values = _describe(jobs, path, k, store.key, store.value)
    stamp = np.int64(0)  # the hash of the key
    for i in range(words):
        stamp = (stamp ^ store.key[i]) * PRIME
        stamp ^= stamp >> 29
    bucket = stamp & (len(store.first) - 1)
    i = store.first[bucket] - 1
    while i >= 0:
        entry = store.entry[i]
        same = entry.stamp == stamp and store.entry[i + 1].key_at - entry.key_at == words
        for j in range(words if same else 0):
            same &= store.keys[entry.key_at + j] == store.key[j]
        if same:
            better, worse = True, True  # no value stored is larger, or none is smaller
            for j in range(values):
                stored = store.values[entry.value_at + j]
                better &= stored <= store.value[j]
                worse &= stored >= store.value[j]
            if better:
                return False
            if worse:
                overwrite(store.values[entry.value_at :], store.value[:values])
                return True
        i = entry.link
    _add(store, bucket, stamp, words, values)
    return True


@njit(cache=True, inner=True)
def _add(store: Store, bucket: int, stamp: int, words: int, values: int) -> None:
    """Store the schedule in the scratch space, if there is room."""
    used = store.used[0]
    if used + 1 == len(store.entry):
        return
    entry, following = store.entry[used], store.entry[used + 1]
    if entry.key_at + words > len(store.keys) or entry.value_at + values > len(store.values):
        return
    overwrite(store.keys[entry.key_at :], store.key[:words])
    overwrite(store.values[entry.value_at :], store.value[:values])
    following.key_at, following.value_at = entry.key_at + words, entry.value_at + values
    entry.stamp, entry.link = stamp, store.first[bucket] - 1
    store.first[bucket] = store.used[0] = used + 1


@njit(cache=True, inner=True)
def _describe(jobs: Jobs, path: Path, k: int, key: Ints, value: Floats) -> tuple[int, int]:
    """Write key and values of the partial schedule, and return their numbers; `label` is overwritten.

    The key is the set of the tasks placed, the set of those whose device matters, and for each of these the
    number of its device: devices are numbered as these tasks come, and each is given with its sort.
    """
    now, state = path.level[k].now, path.device
    words, values, used = 2, 1, 0
    key[0], key[1], value[0] = 0, 0, now
    for d in range(len(state)):
        state[d].label = NOWHERE
    for u in range(len(jobs.task)):
        mine = path.task[u]
        if mine.device != NOWHERE:
            key[0] |= np.int64(1) << u
        if mine.live:
            key[1] |= np.int64(1) << u
            here, spot = state[mine.device], path.spot[k, mine.device]
            if here.label == NOWHERE:
                here.label = used
                used += 1
                value[values], value[values + 1] = max(now, spot.free), -spot.room
                values += 2
            key[words] = here.label * len(state) + jobs.device[mine.device].alike
            value[values] = mine.finish
            words, values = words + 1, values + 1
    return words, _idle_devices(jobs, path, k, value, values)


@njit(cache=True, inner=True)
def _idle_devices(jobs: Jobs, path: Path, k: int, value: Floats, values: int) -> int:
    """Write the values of the devices whose tasks do not matter, sorted among those that are alike."""
    for sort in range(len(path.device)):
        begin = values
        for d in range(len(path.device)):
            if jobs.device[d].alike == sort and path.device[d].label == NOWHERE:
                free, place = max(path.level[k].now, path.spot[k, d].free), values
                while place > begin and value[place - 2] > free:
                    value[place], value[place + 1] = value[place - 2], value[place - 1]
                    place -= 2
                value[place], value[place + 1] = free, -path.spot[k, d].room
                values += 2
    return values
