"""All ideals of the precedence (paper, Definition 5.1) as a lattice that can be walked upward."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem

Ints32 = NDArray[np.int32]

SLICE = 100_000  # ideals that are looked at before the run can be ended


class Lattice(NamedTuple):
    """`I` ideals, numbered so that a subset comes before its supersets; 0 is the empty one.

    Parameters
    ----------
    start, node, to
        The covers as rows: ideal i with supernode ``node[e]`` added is ideal ``to[e]``, for e from
        ``start[i]`` to ``start[i + 1]``, by ascending rank of the supernode.
    parent, added
        Shape (I,): the ideal without its supernode of highest rank, and that supernode (-1 for
        ideal 0). The parents make a tree, in which every ideal is met once.
    rank
        Shape (n,): the place of every supernode in the order that numbers the lattice.
    """

    start: Ints
    node: Ints32
    to: Ints32
    parent: Ints32
    added: Ints32
    rank: Ints

    @property
    def size(self) -> int:
        """How many ideals there are."""
        return len(self.parent)

    @property
    def linear(self) -> bool:
        """True if the ideals are the prefixes of one order."""
        return self.size == len(self.rank) + 1

    def difference(self, ideal: int, smaller: int) -> Ints:
        """The supernodes of an ideal that a smaller one does not have, ascending."""
        return np.setdiff1d(self.members(ideal), self.members(smaller))

    def members(self, ideal: int) -> Ints:
        """The supernodes of an ideal."""
        found = []
        while ideal:
            found.append(self.added[ideal])
            ideal = self.parent[ideal]
        return np.array(found, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes that the lattice takes."""
        return sum(array.nbytes for array in self)


def chain_lattice(order: Ints) -> Lattice:
    """The lattice of one linear order: its ideals are the prefixes (paper, Section 5.1.2).

    Examples
    --------
    >>> chain_lattice(np.array([1, 0])).to.tolist()
    [1, 2]
    """
    n = len(order)
    node = order.astype(np.int32)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    return Lattice(
        start=np.minimum(np.arange(n + 2), n),
        node=node,
        to=np.arange(1, n + 1, dtype=np.int32),
        parent=np.arange(-1, n, dtype=np.int32),
        added=np.concatenate((np.array([-1], dtype=np.int32), node)),
        rank=rank,
    )


def ideal_lattice(
    problem: Problem, max_ideals: int, max_covers: int, ended: Callable[[], bool] = lambda: False
) -> Lattice | None:
    """Enumerate the ideals of a problem; None once there are more than the limits allow, or the run ended.

    Ideals are made level by level, each once, from the one without its highest supernode. The
    other covers follow from the level below: with m the highest supernode of I and v < m, I + v is
    (I - m + v) + m. So neither sets nor hashes of sets are kept.

    Parameters
    ----------
    problem
        Its supernodes are numbered in a topological order, which ranks them here.
    max_ideals, max_covers
        Where to give up, at most 2**31 - 1 each.
    ended
        Whether to give up, asked after every :data:`SLICE` ideals.
    """
    before, after = problem.predecessors, problem.successors
    minimal = np.flatnonzero(np.diff(before.start) == 0)
    if len(minimal) > max_covers:
        return None
    tables, progress = _first_tables(minimal, problem.n), (1, 0, 1, 0, 0)
    rows = before.start, before.items, after.start, after.items
    while progress[1] < progress[0]:
        tables, progress = _extend(tables, progress, SLICE, rows, max_ideals, max_covers)
        if progress[0] < 0 or (progress[1] < progress[0] and ended()):
            return None
    start, node, to, parent, added = tables
    count = progress[0]
    covers = start[count]
    return Lattice(
        start[: count + 1], node[:covers], to[:covers], parent[:count], added[:count], np.arange(problem.n)
    )


def _first_tables(minimal: Ints, n: int) -> tuple[Ints, Ints32, Ints32, Ints32, Ints32]:
    """Return tables with room to grow that hold the empty ideal, which the minimal supernodes can follow."""
    covers = max(8192, n)
    start = np.zeros(1025, dtype=np.int64)
    node = np.empty(covers, dtype=np.int32)
    start[1], node[: len(minimal)] = len(minimal), minimal
    parent, added = np.full((2, 1024), -1, dtype=np.int32)
    return start, node, np.full(covers, -1, dtype=np.int32), parent, added


@njit(cache=True)
def _extend(tables, progress, steps, rows, max_ideals, max_covers):  # type: ignore[no-untyped-def]
    """Return the tables and the progress after a look at so many ideals, or at all that there are.

    The progress is the number of ideals; the first ideal of the current level and of the next one; the ideal
    of the level whose children are made next, and the one whose other covers are filled in next. The number
    is -1 once there are too many.
    """
    start, node, to, parent, added = tables
    count, level, level_end, child, other = progress
    before_start, before, after_start, after = rows
    n, room, cover_room = len(before_start) - 1, len(parent), len(node)
    inside = np.zeros(n, np.bool_)
    while level < count and steps > 0:
        stop = min(level_end, child + steps)
        for ideal in range(child, stop):  # make the ideals that this one is the parent of
            mark(ideal, True, parent, added, inside)
            for e in range(start[ideal], start[ideal + 1]):
                v = node[e]
                if v < added[ideal]:
                    continue
                if count == max_ideals:
                    return (start, node, to, parent, added), (-1, level, level_end, child, other)
                if count == room:
                    parent, added, room = _grown(parent), _grown(added), 2 * room
                    start = _grown(start)
                most = start[count] + n
                while most > cover_room:
                    node, to, cover_room = _grown(node), _grown(to), 2 * cover_room
                end = _covers_of_child(
                    ideal, v, start, node, start[count], inside,
                    before_start, before, after_start, after,
                )  # fmt: skip
                if end > max_covers:
                    return (start, node, to, parent, added), (-1, level, level_end, child, other)
                to[e] = count
                parent[count], added[count] = ideal, v
                count += 1
                start[count] = end
            mark(ideal, False, parent, added, inside)
        steps -= stop - child
        child = stop
        if child < level_end:
            break
        stop = min(level_end, other + steps)
        for ideal in range(other, stop):  # the other covers, through the level below
            for e in range(start[ideal], start[ideal + 1]):
                v = node[e]
                if v > added[ideal]:
                    break
                swapped = to[_find(node, start, parent[ideal], v)]
                to[e] = to[_find(node, start, swapped, added[ideal])]
        steps -= stop - other
        other = stop
        if other == level_end:
            level, level_end = level_end, count
            child = other = level
    return (start, node, to, parent, added), (count, level, level_end, child, other)


@njit(cache=True)
def _covers_of_child(  # type: ignore[no-untyped-def]
    ideal, v, start, node, end, inside, before_start, before, after_start, after
):
    """Write the supernodes that can follow `ideal` + `v`, ascending; return where they end."""
    first = end
    for e in range(start[ideal], start[ideal + 1]):
        if node[e] != v:
            node[end] = node[e]
            end += 1
    for a in range(after_start[v], after_start[v + 1]):
        w = after[a]
        ready = True
        for b in range(before_start[w], before_start[w + 1]):
            if before[b] != v and not inside[before[b]]:
                ready = False
                break
        if ready:
            place = end
            while place > first and node[place - 1] > w:
                node[place] = node[place - 1]
                place -= 1
            node[place] = w
            end += 1
    return end


@njit(cache=True)
def mark(ideal, value, parent, added, inside):  # type: ignore[no-untyped-def]
    """Set `inside` to a value for the supernodes of an ideal."""
    while ideal > 0:
        inside[added[ideal]] = value
        ideal = parent[ideal]


@njit(cache=True)
def _find(node, start, ideal, v):  # type: ignore[no-untyped-def]
    """Position of the cover of `ideal` that adds `v`."""
    low, high = start[ideal], start[ideal + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if node[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _grown(array):  # type: ignore[no-untyped-def]
    longer = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):
        longer[i] = array[i]
    return longer
