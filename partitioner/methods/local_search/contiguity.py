"""Compiled: are the shares of devices contiguous (paper, Definition 3.1)?"""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit


@njit(cache=True)
def leaves_and_returns(stamp, touched, contiguous, place, owner, before_start, before, away):
    """Whether a path leaves one of the devices that were touched and comes back, which it must not.

    Parameters
    ----------
    stamp, touched, contiguous
        The devices d to look at: `touched[d]` is the stamp, and `contiguous[d]`.
    place, owner, before_start, before
        See the model and the state.
    away
        Scratch, shape (m,).
    """
    for d in range(len(contiguous)):
        if touched[d] != stamp or not contiguous[d]:
            continue
        for u in range(len(owner)):
            mine = place[owner[u]] == d
            away[u] = False
            for i in range(before_start[u], before_start[u + 1]):
                p = before[i]
                if mine and away[p]:
                    return True
                if not mine and (away[p] or place[owner[p]] == d):
                    away[u] = True
                    break
    return False
