"""The compiled walk over the stages that begin at one ideal; each search that uses it inlines its sums.

A stage is the difference of two ideals. From an ideal the walk adds one supernode at a time, by ascending
rank, and so meets every larger ideal once; on the way back it takes them out again. What a stage is made of
is added up in a *tally*: a record of the sums of the current stage, with a few functions that :func:`walk_of`
inlines into a walk of their own. So one source serves searches that add up different sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp.lattice import first_later_cover
from partitioner.problem.arrays import Floats, Ints


class WalkPath(NamedTuple):
    """The place of a walk; at depth d a stage has d supernodes.

    Parameters
    ----------
    cursor, end, blocked
        Shape (n + 2,): by depth, the next cover of the ideal, the one before which to end, and the weight
        that can no longer be added.
    """

    cursor: Ints
    end: Ints
    blocked: Floats


def new_path(nodes: int) -> WalkPath:
    """Return the place of a walk over the stages of that many supernodes."""
    depths = nodes + 2
    return WalkPath(np.zeros(depths, np.int64), np.zeros(depths, np.int64), np.zeros(depths))


def walk_of(enter: Any, leave: Any, reach: Any, lost: Any) -> Any:
    """Return the compiled walk that adds up with these plain functions, which it inlines.

    Parameters
    ----------
    enter
        ``enter(tally, start, ideal, depth, v)`` adds supernode v to the stage of `depth` supernodes that
        begins at ideal `start`, which then leads to `ideal`. It returns whether this stage or a larger one is
        wanted; if not, it has undone what it did.
    leave
        ``leave(tally, v)`` takes the supernode that was added last out again.
    reach
        ``reach(tally, start, ideal, depth, target)`` reads the stage, of `depth` supernodes, and returns the
        steps that this counts as. Stages that leave more than the weight `target` are not wanted.
    lost
        ``lost(tally, v)`` returns the weight that can no longer be added once supernode v is left out.

    Returns
    -------
    callable
        ``walk(lattice, path, start, target, tally)`` walks over the stages that begin at ideal `start` and
        returns the supernodes added and the steps that reading counts as. It is kept on disk with the kernel
        that calls it, not by itself.
    """
    enter, leave, reach, lost = (
        njit(inner=True, forceinline=True, _nrt=False)(each) for each in (enter, leave, reach, lost)
    )

    @njit(_nrt=False)
    def walk(lattice, path, start, target, tally):  # type: ignore[no-untyped-def]
        start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
        cursor, end, blocked = path.cursor, path.end, path.blocked
        depth, steps = np.int64(0), 0  # as a literal it would have functions compiled twice
        cursor[0], end[0], blocked[0] = start_of[start], start_of[start + 1], 0.0
        while depth >= 0:
            e = cursor[depth]
            if e == end[depth] or blocked[depth] > target:
                # all stages with these supernodes have been read: take the last one out again
                depth -= 1
                if depth >= 0:
                    leave(tally, node[cursor[depth] - 1])
                continue
            cursor[depth] = e + 1
            v, ideal = node[e], to[e]
            steps += 1
            wanted = enter(tally, start, ideal, depth, v)
            passed = max(blocked[depth], lost(tally, v))
            if not wanted:
                blocked[depth] = passed
                continue
            steps += reach(tally, start, ideal, depth + 1, target)
            blocked[depth + 1] = blocked[depth]
            blocked[depth] = passed
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
        return steps

    return walk
