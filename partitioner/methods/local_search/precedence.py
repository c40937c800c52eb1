"""The precedence of stages of a chain during the search, compiled: device d runs stage d."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit

MOST = 24  # supernodes that follow one


@njit(cache=True)
def follow(who, where, place, ahead_start, ahead, behind_start, behind, stamp, mark):
    """Add to the move of a supernode those that must move with it, and return how many move; 0 if too many.

    If it moves to a later stage, its successors in stages before that move there as well; if it moves to an
    earlier one, its predecessors do.

    Parameters
    ----------
    who, where
        The supernode and its new device are in the first places; the others are written behind.
    place, ahead_start, ahead, behind_start, behind
        See :class:`PlacementState` and :class:`PlacementModel`.
    stamp, mark
        A number not used before, and scratch space of shape (n,).
    """
    d = where[0]
    later = d > place[who[0]]
    start, near = (ahead_start, ahead) if later else (behind_start, behind)
    mark[who[0]] = stamp
    moves, i = 1, 0
    while i < moves:
        v = who[i]
        for j in range(start[v], start[v + 1]):
            w = near[j]
            if mark[w] == stamp or place[w] == d or (place[w] < d) != later:
                continue
            if moves == MOST:
                return 0
            mark[w] = stamp
            who[moves], where[moves] = w, d
            moves += 1
        i += 1
    return moves


@njit(cache=True)
def turns_back(who, moves, place, ahead_start, ahead, behind_start, behind):
    """Whether an edge of one of the first `moves` supernodes of `who` leads to an earlier stage."""
    for i in range(moves):
        v = who[i]
        for j in range(ahead_start[v], ahead_start[v + 1]):
            if place[ahead[j]] < place[v]:
                return True
        for j in range(behind_start[v], behind_start[v + 1]):
            if place[behind[j]] > place[v]:
                return True
    return False
