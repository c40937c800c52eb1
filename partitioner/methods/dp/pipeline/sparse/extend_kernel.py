"""The compiled search: the best pipelines of each ideal are extended by every listed stage."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.pipeline.sparse.pool_kernel import COUNT, CUT, IDEAL, best_of, enter

SLACK = 1e-9
DONE, PAUSED, FULL = range(3)


@njit(cache=True, nogil=True)
def extend(stages, counts, price, least, total, pool, at, width, budget):
    """Extend pipelines ideal by ideal, from the one in `at` on.

    Parameters
    ----------
    stages, counts
        The list of stages, and how devices are counted.
    price, total
        Shape (K,): the price of a device of each kind; and that of all devices.
    least
        What :func:`least_prices` writes.
    pool, at
        The pool, which is written, and the state of the search.
    width
        How many pipelines of each ideal are extended.
    budget
        Return after the ideal at which this many pipelines have been tried.

    Returns
    -------
    int
        DONE: the full ideal is reached; PAUSED; or FULL: the pool must grow.
    """
    last = least.shape[0] - 1
    kinds, words = len(price), len(counts.guard)
    rows = np.empty(width, np.int64)
    used = np.empty(words, np.int64)
    counted = counts.most[kinds] > 0
    steps = 0
    while at[IDEAL] < last:
        if steps > budget:
            return PAUSED
        ideal = at[IDEAL]
        ahead = stages.first[ideal + 1] - stages.first[ideal]
        if pool.head[ideal] < 0 or ahead == 0:
            at[IDEAL] += 1
            continue
        kept, more = best_of(pool, ideal, width, counts.guard, counts.exact, rows)
        at[CUT] |= more
        steps += pool.members[ideal] + kept * ahead
        for i in range(kept):
            j = rows[i]
            p = pool.last[j]
            if at[COUNT] + ahead > len(pool.mask):
                return FULL  # what is entered again does no harm
            if (
                counted
                and ((pool.used[j, counts.word[kinds]] >> counts.shift[kinds]) & counts.bits[kinds])
                == counts.most[kinds]
            ):
                continue
            for e in range(stages.first[ideal], stages.first[ideal + 1]):
                k, to = stages.kind[e], stages.to[e]
                here, copies = stages.group[e], stages.copies[e]
                if not (pool.mask[j] >> here) & 1 or pool.behind[j] > stages.behind[e]:
                    continue
                have = (pool.used[j, counts.word[k]] >> counts.shift[k]) & counts.bits[k]
                if have + copies > counts.most[k]:
                    continue
                spare = pool.spare[j] - copies * price[k]
                mask, slack = np.int64(0), -np.inf
                bits, q = stages.mask[e, p], 0
                while bits:
                    if bits & 1 and least[to, here, q] <= spare + SLACK * total:
                        mask |= np.int64(1) << q
                        slack = max(slack, spare - least[to, here, q])
                    bits >>= 1
                    q += 1
                if mask == 0:
                    continue
                for w in range(words):
                    used[w] = pool.used[j, w]
                used[counts.word[k]] += np.int64(copies) << counts.shift[k]
                if counted:
                    used[counts.word[kinds]] += np.int64(1) << counts.shift[kinds]
                behind = pool.behind[j] + copies
                enter(pool, at, width, to, here, used, mask, behind, spare, slack, j, e)
        at[IDEAL] += 1
    return DONE
