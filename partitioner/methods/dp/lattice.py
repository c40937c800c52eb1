"""The lattice of all ideals of the precedence (paper, Definition 5.1), in a form to walk upwards.

An ideal holds every predecessor of its supernodes. Three nodes with edges 0 -> 1 and 0 -> 2 have the ideals
{}, {0}, {0, 1}, {0, 2} and {0, 1, 2}. Sums over the ideals prune the walk; the kernels fill arrays that they
are given, because returning an array calls Python code, in which an exception of a signal handler is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import first_at_least, njit
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem

if TYPE_CHECKING:
    from partitioner.problem.arrays import Floats, Ints


Ints32 = NDArray[np.int32]
ROOM = 1024  # ideals that the arrays hold at first
SLICE = 100_000  # ideals between two checks whether the run should end
COMPLETE, PAUSED, OVER = range(3)


class Lattice(NamedTuple):
    """`I` ideals, numbered so that a subset comes before its supersets; 0 is the empty one.

    Those that hold an ideal and further supernodes of higher rank follow it at once, so that a walk finds
    most of what it reads near to what it read before.

    Parameters
    ----------
    start, node, to
        The covers as rows: ideal i with supernode ``node[e]`` added is ideal ``to[e]``, for e from
        ``start[i]`` to ``start[i + 1]``, by ascending rank of the supernode.
    parent, added
        Shape (I,): the ideal without its supernode of highest rank, and that supernode (-1 for ideal 0).
        The parents form a tree that holds every ideal once.
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
        """Whether the ideals are the prefixes of one order."""
        return self.size == len(self.rank) + 1

    def difference(self, ideal: int, smaller: int) -> Ints:
        """Return the supernodes of an ideal that a smaller one does not hold, ascending."""
        return np.setdiff1d(self.members(ideal), self.members(smaller))

    def members(self, ideal: int) -> Ints:
        """Return the supernodes of an ideal."""
        found = []
        while ideal:
            found.append(self.added[ideal])
            ideal = self.parent[ideal]
        return np.array(found, dtype=np.int64)

    def membership(self) -> NDArray[np.bool_]:
        """Return which supernodes each ideal holds, shape (I, n)."""
        inside = np.zeros((self.size, len(self.rank)), dtype=bool)
        inside[np.arange(1, self.size), self.added[1:]] = True
        for ideal in range(1, self.size):
            inside[ideal] |= inside[self.parent[ideal]]
        return inside

    @property
    def nbytes(self) -> int:
        """Bytes that the lattice takes."""
        return sum(array.nbytes for array in self)


def chain_lattice(order: Ints) -> Lattice:
    """Return the lattice of one linear order: its ideals are the prefixes (paper, Section 5.1.2).

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
    """Return the lattice of a problem's ideals; None if they exceed a limit, or the run should end.

    Ideals are made level by level, each once, from the one without its highest supernode. The
    other covers follow from the level below: with m the highest supernode of I and v < m, I + v is
    (I - m + v) + m. So neither sets nor hashes of sets are stored.

    Parameters
    ----------
    problem
        A problem whose supernodes are numbered in a topological order, which is their rank.
    max_ideals, max_covers
        Limits, at most 2**31 - 1 each.
    ended
        Function called after every :data:`SLICE` ideals: whether to give up.
    """
    before, after = problem.predecessors, problem.successors
    entries = np.flatnonzero(np.diff(before.start) == 0)
    if len(entries) > max_covers:
        return None
    start, parent = np.zeros(ROOM + 1, np.int64), np.full(ROOM, -1, np.int32)
    added = parent.copy()
    node = np.empty(8 * ROOM + problem.n, np.int32)
    to, inside = np.empty_like(node), np.zeros(problem.n, np.bool_)
    start[1], node[: len(entries)] = len(entries), entries
    rows = PrecedenceRows(before.start, before.items, after.start, after.items)
    at = np.array([1, 0, 1, 0, 0])
    state = PAUSED
    while state == PAUSED and not ended():
        arrays = LatticeArrays(start, node, to, parent, added, inside)
        state = _enumerate(rows, arrays, at, at[0] + SLICE, max_ideals, max_covers)
        count = at[0]
        if count == len(parent):
            start, parent, added = _grown(start), _grown(parent), _grown(added)
        if start[count] + problem.n > len(node):
            node, to = _grown(node), _grown(to)
    if state != COMPLETE:
        return None
    covers, rank = start[count], np.arange(problem.n)
    made = Lattice(start[: count + 1], node[:covers], to[:covers], parent[:count], added[:count], rank)
    found = Lattice(*map(np.empty_like, made))._replace(rank=rank)
    _depth_first(made, found, np.empty(count, np.int64), np.ones(count, np.int64))
    return found


def _grown(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((array, np.empty_like(array)))


class PrecedenceRows(NamedTuple):
    """Rows over supernodes: those that come directly before each, and directly after it."""

    before_start: Ints
    before: Ints
    after_start: Ints
    after: Ints


class LatticeArrays(NamedTuple):
    """A lattice that is being made, see :class:`Lattice`, and shape (n,): what the current ideal holds."""

    start: Ints
    node: Ints32
    to: Ints32
    parent: Ints32
    added: Ints32
    inside: NDArray[np.bool_]


@njit(cache=True, nogil=True)
def _enumerate(rows, arrays, at, pause, max_ideals, max_covers):  # type: ignore[no-untyped-def]
    """Continue from `at` until there are `pause` ideals, or all of them, or arrays are full, or over a limit.

    An array that a kernel returns is made by Python code, in which an exception of a signal handler is lost.
    So the arrays are arguments, and `at` holds the number of ideals, the begin and end of the level, the
    ideal to continue with, and its cover.
    """
    start, node, to, parent, added, inside = arrays
    n = len(rows.before_start) - 1
    count, level, level_end, ideal, e = at[0], at[1], at[2], at[3], at[4]
    while level < count:
        while ideal < level_end:  # make the ideals whose parent this one is
            mark(ideal, True, parent, added, inside)
            while e < start[ideal + 1]:
                v = node[e]
                if v >= added[ideal]:
                    full = count == len(parent) or start[count] + n > len(node)
                    if full or count in (pause, max_ideals):
                        mark(ideal, False, parent, added, inside)
                        at[0], at[1], at[2], at[3], at[4] = count, level, level_end, ideal, e
                        return OVER if count == max_ideals else PAUSED
                    end = _covers_of_child(rows, arrays, ideal, v, start[count])
                    if end > max_covers:
                        return OVER
                    to[e] = count
                    parent[count], added[count] = ideal, v
                    count += 1
                    start[count] = end
                e += 1
            mark(ideal, False, parent, added, inside)
            ideal += 1
        for other in range(level, level_end):  # find the other covers by the level below
            for c in range(start[other], start[other + 1]):
                v = node[c]
                if v > added[other]:
                    break
                up = parent[other]
                swapped = to[first_at_least(node, start[up], start[up + 1], v)]
                to[c] = to[first_at_least(node, start[swapped], start[swapped + 1], added[other])]
        level, level_end = level_end, count
    at[0] = count
    return COMPLETE


@njit(cache=True, inner=True)
def _covers_of_child(rows, arrays, ideal, v, end):  # type: ignore[no-untyped-def]
    """Write the supernodes that can follow `ideal` + `v`, ascending; return the end of their list."""
    start, node, inside, before = arrays.start, arrays.node, arrays.inside, rows.before
    first = end
    for e in range(start[ideal], start[ideal + 1]):
        if node[e] != v:
            node[end] = node[e]
            end += 1
    for a in range(rows.after_start[v], rows.after_start[v + 1]):
        w = rows.after[a]
        ready = True
        for b in range(rows.before_start[w], rows.before_start[w + 1]):
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


@njit(cache=True, nogil=True)
def _depth_first(made, found, place, end):  # type: ignore[no-untyped-def]
    """Write a lattice whose levels are numbered one after another to `found`, numbered depth first.

    The children of an ideal come behind it by descending rank, each with all of its own behind it. `place`
    and `end`, of shape (I,), get the new numbers of the ideals, and where their last children begin; `end`
    counts at first how many ideals there are in the tree below each.
    """
    start, count = made.start, len(place)
    for i in range(count - 1, 0, -1):
        end[made.parent[i]] += end[i]
    place[0], found.parent[0], found.added[0] = 0, -1, -1
    for i in range(1, count):  # brothers by ascending rank, so the first one gets the last place
        up = made.parent[i]
        end[up] -= end[i]
        place[i] = end[up]
        end[i] += place[i]
        found.parent[place[i]], found.added[place[i]] = place[up], made.added[i]
    found.start[0] = 0
    for i in range(count):
        found.start[place[i] + 1] = start[i + 1] - start[i]
    for i in range(count):
        found.start[i + 1] += found.start[i]
    for i in range(count):
        first = found.start[place[i]] - start[i]
        for e in range(start[i], start[i + 1]):
            found.node[first + e], found.to[first + e] = made.node[e], place[made.to[e]]


@njit(cache=True, inner=True)
def first_later_cover(start, node, rank, ideal, v):  # type: ignore[no-untyped-def]
    """Return the position of the first cover of `ideal` whose supernode is ranked after `v`.

    A walk that grows a stage by supernodes of ascending rank makes each larger ideal once.
    """
    cover = start[ideal + 1]
    while cover > start[ideal] and rank[node[cover - 1]] > rank[v]:
        cover -= 1
    return cover


@njit(cache=True, inner=True)
def mark(ideal, value, parent, added, inside):  # type: ignore[no-untyped-def]
    """Set `inside`, shape (n,), to a value for the supernodes of an ideal."""
    while ideal > 0:
        inside[added[ideal]] = value
        ideal = parent[ideal]


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def relocate(parent, added, row_start, item, count, place, start):  # type: ignore[no-untyped-def]
    """Change `count` from ideal `place` to `start`: the number of times that each item is in an ideal's rows.

    The steps follow the tree of parents. If the rows are the nets of every supernode, `count` is the number
    of pins that each net has inside the ideal.
    """
    old, new = place, start
    while old != new:
        if old > new:
            v, change = added[old], -1
            old = parent[old]
        else:
            v, change = added[new], 1
            new = parent[new]
        for i in range(row_start[v], row_start[v + 1]):
            count[item[i]] += change


def remaining_weights(lattice: Lattice, weight: Floats) -> Floats:
    """Return the total weight of the supernodes outside each ideal, shape (I,)."""
    remaining = np.empty(len(lattice.parent))
    _fill_remaining(lattice, weight, remaining)
    return remaining


def weights_above(start: Ints, after: Ints, weight: Floats, linear: bool) -> Floats:
    """Return the total weight of each supernode and all its descendants, shape (n,).

    It is 0 in a linear lattice, where a walk never skips a supernode, so that it is not needed.
    """
    above = np.zeros(len(weight))
    if not linear:
        _add_above(start, after, weight, above)
    return above


def easiest_followers(lattice: Lattice, growth: Floats) -> Ints32:
    """Return the supernode of least growth among those that can follow each ideal, or -1, shape (K, I)."""
    easiest = np.full((len(growth), len(lattice.parent)), -1, np.int32)
    ideal = np.repeat(np.arange(len(lattice.parent)), np.diff(lattice.start))
    for row, each in zip(easiest, growth[:, lattice.node], strict=True):
        least = np.full(len(row), np.inf)
        np.minimum.at(least, ideal, each)
        best = np.flatnonzero((each == least[ideal]) & (each < np.inf))[::-1]  # the first of equals stays
        row[ideal[best]] = lattice.node[best]
    return easiest


@njit(cache=True, nogil=True)
def _fill_remaining(lattice, weight, remaining):  # type: ignore[no-untyped-def]
    remaining[0] = 0.0
    for each in weight:
        remaining[0] += each
    for ideal in range(1, len(remaining)):
        remaining[ideal] = remaining[lattice.parent[ideal]] - weight[lattice.added[ideal]]


@njit(cache=True, nogil=True)
def _add_above(start, after, weight, above):  # type: ignore[no-untyped-def]
    n = len(weight)
    seen, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    seen[:] = -1
    for root in range(n):
        stack[0], depth = root, 1
        seen[root] = root
        while depth > 0:
            depth -= 1
            v = stack[depth]
            above[root] += weight[v]
            for e in range(start[v], start[v + 1]):
                if seen[after[e]] != root:
                    seen[after[e]] = root
                    stack[depth] = after[e]
                    depth += 1
