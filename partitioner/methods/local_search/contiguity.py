"""The check whether the shares of devices are contiguous (paper, Definition 3.1), compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit


@njit(cache=True)
def leaves_and_returns(stamp, touched, contiguous, place, owner, before_start, before, away):
    """Whether a path leaves a touched device and comes back to it, so that its share is not contiguous.

    Parameters
    ----------
    stamp, touched, contiguous
        Shape (D,) each: device d is checked if `touched[d]` is the stamp and `contiguous[d]` is True.
    place, owner, before_start, before
        See :class:`PlacementState` and :class:`PlacementModel`.
    away
        Shape (m,): scratch space.
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
