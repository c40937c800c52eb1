"""Compiled: the pool of pipelines, in which equal ones are found and the worst ones left out."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit

SPREAD = 0x9E3779B97F4A7C15 - 2**64  # odd, so that a product with it spreads over the bits
COUNT, IDEAL, CUT = range(3)  # entries of `at`: pipelines in the pool, the ideal to go on with, any left out


@njit(cache=True)
def hash_of(ideal, last, used):
    """Return the hash of an ideal, the group of the last stage and packed counts."""
    mixed = (ideal * 64 + last + 1) * SPREAD
    for w in range(len(used)):
        mixed = (mixed ^ (mixed >> 29) ^ used[w]) * SPREAD
    return mixed ^ (mixed >> 31)


@njit(cache=True)
def enter(pool, at, width, ideal, last, used, mask, behind, spare, slack, parent, stage):
    """Enter a pipeline, unless one with the same devices may go to as many groups; the pool has room."""
    if slack < pool.cutoff[ideal]:
        at[CUT] = 1
        return
    limit = len(pool.slot) - 1
    slot = hash_of(ideal, last, used) & limit
    place = -1
    while pool.slot[slot] >= 0 and place < 0:
        j = pool.slot[slot]
        same = pool.ideal[j] == ideal and pool.last[j] == last
        for w in range(len(used)):
            same = same and pool.used[j, w] == used[w]
        if same and (pool.mask[j] | mask) == pool.mask[j]:
            return
        if same and (pool.mask[j] | mask) == mask:
            place = j
        slot = (slot + 1) & limit
    if place < 0:
        place = at[COUNT]
        at[COUNT] += 1
        pool.slot[slot] = place
        pool.other[place], pool.head[ideal] = pool.head[ideal], place
        pool.members[ideal] += 1
        pool.ideal[place], pool.last[place], pool.behind[place] = ideal, last, behind
        for w in range(len(used)):
            pool.used[place, w] = used[w]
    pool.mask[place], pool.spare[place], pool.slack[place] = mask, spare, slack
    pool.parent[place], pool.stage[place] = parent, stage
    if pool.members[ideal] >= pool.check[ideal]:
        raise_cutoff(pool, ideal, width)


@njit(cache=True)
def raise_cutoff(pool, ideal, width):
    """Let only the best `width` pipelines of an ideal be kept."""
    slack = np.empty(pool.members[ideal], np.float64)
    j, count = pool.head[ideal], 0
    while j >= 0:
        slack[count] = pool.slack[j]
        count += 1
        j = pool.other[j]
    slack.sort()
    pool.cutoff[ideal] = slack[count - width]
    pool.check[ideal] = count + 3 * width


@njit(cache=True)
def best_of(pool, ideal, width, guard, exact, rows):
    """List the pipelines of an ideal to extend in `rows`; return how many, and whether others are left out.

    A pipeline is left out without loss if another one has the same last group, uses no more devices of any
    kind and may go to as many groups.
    """
    count, j = 0, pool.head[ideal]
    total = pool.members[ideal]
    every, slack = np.empty(total, np.int64), np.empty(total, np.float64)
    while j >= 0:
        if pool.slack[j] >= pool.cutoff[ideal]:
            every[count], slack[count] = j, -pool.slack[j]
            count += 1
        j = pool.other[j]
    order = np.argsort(slack[:count], kind="mergesort")
    kept, words = 0, len(guard)
    for i in order:
        j = every[i]
        dominated = False
        for other in range(kept if not exact else 0):
            a = rows[other]
            if pool.last[a] != pool.last[j] or (pool.mask[a] | pool.mask[j]) != pool.mask[a]:
                continue
            fewer = True
            for w in range(words):
                fewer = fewer and (((pool.used[j, w] | guard[w]) - pool.used[a, w]) & guard[w]) == guard[w]
            if fewer:
                dominated = True
                break
        if dominated:
            continue
        if kept == width:
            return kept, True
        rows[kept] = j
        kept += 1
    return kept, False


@njit(cache=True, nogil=True)
def enter_root(pool, at, total, mask):
    """Enter the empty pipeline, which leaves all devices and may go to the groups of a mask."""
    pool.used[0, :] = 0
    pool.ideal[0], pool.mask[0], pool.last[0], pool.behind[0] = 0, mask, 0, 0
    pool.spare[0], pool.slack[0], pool.parent[0], pool.other[0] = total, 0.0, -1, -1
    pool.head[0], pool.members[0], at[COUNT] = 0, 1, 1


@njit(cache=True, nogil=True)
def refill(pool, count):
    """Enter the first `count` pipelines in the slots, which are empty."""
    limit = len(pool.slot) - 1
    for j in range(count):
        slot = hash_of(pool.ideal[j], pool.last[j], pool.used[j]) & limit
        while pool.slot[slot] >= 0:
            slot = (slot + 1) & limit
        pool.slot[slot] = j
