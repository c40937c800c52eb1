"""The memory of one attempt: pools of states, how large they may be and how they grow, and work space."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.anytime.arrays import Expansion, Pool
from partitioner.methods.dp.anytime.known import fill_slots
from partitioner.problem.problem import Problem

ROOM = 1 << 14  # states that a pool has room for at first
SLOTS = 4  # slots for each state, a power of two
BYTES = 37 + 4 * SLOTS  # for each state, besides its ideal
BOUNDS = 3
KEPT = ("ideal", "key", "used", "kind", "parent", "priority", "one", "other")


def most_states(problem: Problem, memory_budget: int) -> int:
    """Return how many states the budget holds, with room for copying when the pool grows."""
    each = 8 * _words(problem) + BYTES
    return max(2, min(memory_budget // (2 * each), 2**31 // SLOTS - 1))


def empty_pool(problem: Problem, most: int) -> Pool:
    """Return a pool that holds the state of the empty ideal."""
    room = min(ROOM, most)
    stages = int(problem.count.sum())
    pool = _pool(room, _words(problem), np.full(stages + 1, -1, np.int32))
    pool.top[0] = 0
    fill_slots(pool, 1)
    return pool


def grown(pool: Pool, count: int, most: int) -> Pool:
    """Return the pool with room for twice the states, at most `most`; it holds `count` states."""
    room, words = pool.ideal.shape
    larger = _pool(min(2 * room, most), words, pool.top)
    for name in KEPT:
        getattr(larger, name)[:count] = getattr(pool, name)[:count]
    fill_slots(larger, count)
    return larger


def work_space(problem: Problem) -> Expansion:
    """Return the work space for expanding states."""
    n, kinds, nets = problem.n, len(problem.count), len(problem.nets.cost)
    return Expansion(
        placed=np.zeros(n, np.bool_),
        missing=np.zeros(n, np.int64),
        candidate=np.zeros(n + 1, np.int64),
        position=np.zeros(n + 2, np.int64),
        ready=np.zeros(n + 2, np.int64),
        before=np.zeros(nets, np.int64),
        inside=np.zeros(nets, np.int64),
        compute=np.zeros((n + 2, kinds)),
        size=np.zeros(n + 2),
        transfer=np.zeros((n + 2, 3)),
        weight=np.zeros((n + 2, BOUNDS)),
        key=np.zeros(n + 2, np.uint64),
    )


def _words(problem: Problem) -> int:
    return -(-problem.n // 64)


def _pool(room: int, words: int, top: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Pool:
    """Return a pool without states."""
    slots = 1 << (room * SLOTS // 2).bit_length()
    return Pool(
        ideal=np.zeros((room, words), np.uint64),
        key=np.zeros(room, np.uint64),
        used=np.zeros(room, np.int32),
        kind=np.zeros(room, np.int8),
        parent=np.full(room, -1, np.int32),
        priority=np.zeros(room),
        one=np.full(room, -1, np.int32),
        other=np.full(room, -1, np.int32),
        alike=np.full(room, -1, np.int32),
        slot=np.full(slots, -1, np.int32),
        top=top,
    )
