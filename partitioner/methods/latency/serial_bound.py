"""Lower bounds on the latency that take no search.

The least time between two subgraphs on either side of a block, through nodes of neither.

The cuts of a block between two separators, and the least cost of each.

The serial bound: a graph that is nearly a series cannot avoid the costs of its cuts.

Take separators s_0, ..., s_m such that every path between two of them that the weakened graph keeps
passes those between. In any layout let U_1, ..., U_r be, in order, the subgraphs and single nodes that
hold separators. A subgraph is contiguous, so it holds a run s_a .. s_b of separators, all inner nodes of
the blocks between them, an ideal of the block after s_b and the complement of an ideal of the block
before s_a. It lasts for all its work and for the nets that are cut there; the next one starts after it
has finished, and after every path through the nodes between the two, which run elsewhere: their
subgraphs cannot hold a separator, or they would hold one of the two as well. So the latency is at least
the length of the whole sequence, and the shortest sequence whose subgraphs each fit a device's memory,
found by a dynamic program over separators and ideals, is a lower bound. Dropping nodes, edges or
transfers loses no layout. A node that no separator precedes but that one of these nodes reads (an
embedding, say) is in the same subgraph as its reader, where it takes memory, or its net is moved in.

Without the serial bounds the bound is lower on 7 of the 8 published rows, and the eighth is proven later
(scripts/ablations.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.latency.flow import (
    EFFORT,
    Flow,
    Spine,
    flow_for,
    heaviest_path,
    spine_along,
    with_group_members,
)
from partitioner.methods.latency.path import longest_path
from partitioner.methods.loads import joint_loads
from partitioner.methods.method import OutOfTimeError, Settings
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import SampleProblem

Bits = NDArray[np.uint64]


def times_between(
    ideals: Bits,
    free: Floats,
    paid: Floats,
    edges: list[tuple[int, int]],
    nets: list[tuple[int, list[int], float]],
) -> Floats:
    """Return the longest path through the nodes of ideal j that are not in ideal i, shape (s, s).

    The nodes of a path run alone, or in subgraphs other than the two on either side. The end of a node is
    the least over all such choices of its predecessors, so that the bound holds for every layout.

    Parameters
    ----------
    ideals
        Shape (s,): sets of inner nodes as bits.
    free, paid
        Shape (n,): time of each inner node when it runs alone, and in a subgraph.
    edges
        The block's edges; inner nodes are 1 to n, the separators 0 and n + 1.
    nets
        Source, readers and cost of the nets that are paid where an edge is cut; empty if transfers are not
        added to processing.
    """
    n, times = len(free), np.full((len(ideals), len(ideals)), np.inf)
    _between(ideals, _after(n, edges), free, paid, _edge_costs(n, edges, nets), times)
    return times


def _edge_costs(n: int, edges: list[tuple[int, int]], nets: list[tuple[int, list[int], float]]) -> Floats:
    """Return the cost of cutting each edge for either side, -1 without an edge, shape (n + 2, n + 2)."""
    cost = np.full((n + 2, n + 2), -1.0)
    for u, v in edges:
        cost[u, v] = 0.0
    for source, readers, amount in nets:
        for v in readers:
            cost[source, v] += amount if cost[source, v] >= 0 else 0.0
    return cost


def _after(n: int, edges: list[tuple[int, int]]) -> Bits:
    """Return the inner successors of each inner node, as bits, shape (n,)."""
    after = np.zeros(n, dtype=np.uint64)
    for u, v in edges:
        if u > 0 and v <= n:
            after[u - 1] |= np.uint64(1 << (v - 1))
    return after


@njit(cache=True, nogil=True)
def _between(ideals: Bits, after: Bits, free: Floats, paid: Floats, cost: Floats, result: Floats) -> None:
    count, n = len(ideals), len(free)
    one = np.uint64(1)
    alone, shared, last, order = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    for i in range(count):
        for v in range(n):
            if ideals[i] >> numba.uint64(v) & one:
                last[v] = -1.0
                continue
            # The earliest end of node v after the ideal: alone, and in a subgraph that began outside.
            by_itself, in_subgraph = 0.0, max(cost[0, v + 1], 0.0)
            for u in range(v):
                moved = cost[u + 1, v + 1]
                if moved < 0:
                    continue
                if ideals[i] >> numba.uint64(u) & one:
                    in_subgraph = max(in_subgraph, moved)
                else:
                    by_itself = max(by_itself, min(alone[u], shared[u] + moved))
                    in_subgraph = max(in_subgraph, min(shared[u], alone[u] + moved))
            alone[v], shared[v] = by_itself + free[v], in_subgraph + paid[v]
            most = 0.0
            for w in range(v + 1, n + 1):
                most = max(most, cost[v + 1, w + 1])
            last[v] = min(alone[v], shared[v] + most)
        for u in range(n):  # by falling time
            at = u
            while at > 0 and last[order[at - 1]] < last[u]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = u
        for j in range(count):
            if ideals[i] & ~ideals[j] == 0:
                middle = ideals[j] & ~ideals[i]
                result[i, j] = 0.0
                for latest in order:
                    if middle >> numba.uint64(latest) & one and after[latest] & middle == 0:
                        result[i, j] = last[latest]
                        break


Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Block:
    """The ideals of a block's inner nodes, as bits: each can be cut off from the rest.

    Parameters
    ----------
    ideal
        Shape (s,): the sets; the first is empty, the last holds all.
    work, size
        Shape (s,): the summed work and size of each set.
    rest
        Shape (s,): the work of the complement of each set.
    cut
        Shape (s,): cost of the nets between the set (and the separator before it) and its complement (and
        the separator after it).
    ends, begins
        Shape (s,): whether a subgraph may end with the set, and whether one may begin with its complement;
        it may not if that splits a group whose nodes share a subgraph.
    between
        Shape (s, s): the least time between the end of ideal i and the begin of the complement of ideal j, if
        the nodes in neither run elsewhere; infinity where i is not within j.
    """

    ideal: Bits
    work: Floats
    size: Floats
    rest: Floats
    cut: Floats
    ends: Mask
    begins: Mask
    between: Floats


def block_of(flow: Flow, spine: Spine, k: int, far: set[int], additive: bool) -> Block:
    """Return the cuts of block `k`; nets in `far` are left out.

    If transfers are not added to processing, `between` counts none of them. A block with too many ideals,
    or too many nodes, has cuts without cost: only its longest path counts.
    """
    inner, two = spine.inner[k], (spine.separators[k], spine.separators[k + 1])
    paid, size = flow.paid[inner], flow.size[inner]
    number = {node: i + 1 for i, node in enumerate([*inner, two[1]])} | {two[0]: 0}
    edges = [(number[u], number[v]) for u, v in spine.edges[k]]
    nets = _local_nets(flow, number, far, two[1])
    ideals = _ideals(len(inner), edges) if len(inner) <= EFFORT.widest else None
    if ideals is None:
        return _opaque(np.minimum(flow.paid, flow.free)[inner], edges, paid, size)
    ends, begins = _untorn(flow, spine, k, _members(ideals, len(inner)))
    kept = ends | begins
    kept[[0, -1]] = True
    ideals, ends, begins = ideals[kept], ends[kept], begins[kept]
    member = _members(ideals, len(inner))
    lone = np.isin(flow.unit[inner], flow.unit[list(two)])
    middle = np.where(lone, np.inf, paid)
    between = times_between(ideals, flow.free[inner], middle, edges, nets if additive else [])
    work, rest = _sums(member, paid), _sums(~member, paid)
    return Block(ideals, work, _sums(member, size), rest, _cuts(member, nets), ends, begins, between)


def _untorn(flow: Flow, spine: Spine, k: int, member: Mask) -> tuple[Mask, Mask]:
    """Return whether no group is split by a cut where a subgraph ends, and where one begins, (s,) each."""
    inner, (left, right) = spine.inner[k], spine.separators[k : k + 2]
    place = spine.places(len(flow.size))
    ends, begins = np.ones(len(member), dtype=bool), np.ones(len(member), dtype=bool)
    for unit in np.unique(flow.unit[[left, right, *inner]]).tolist():
        places = place[flow.unit == unit]
        mine = member[:, flow.unit[inner] == unit]
        here = mine.any(axis=1) | (flow.unit[left] == unit)
        there = ~mine.all(axis=1) | (flow.unit[right] == unit)
        ends &= ~(here & (there | bool((places > 2 * k + 1).any())))
        begins &= ~(there & (here | bool(((places >= 0) & (places < 2 * k + 1)).any())))
    return ends, begins


def _local_nets(
    flow: Flow, number: dict[int, int], far: set[int], last: int
) -> list[tuple[int, list[int], float]]:
    """Return the nets made in the block or just before, and read in it or just after, by local numbers."""
    nets = []
    for e, (source, readers, cost) in enumerate(flow.nets):
        if e not in far and source in number and source != last:
            local = [number[v] for v in readers if number.get(v, 0) > 0]
            if local:
                nets.append((number[source], local, cost))
    return nets


def _ideals(n: int, edges: list[tuple[int, int]]) -> Bits | None:
    """Return all sets of inner nodes that hold the inner predecessors of their nodes; None if too many."""
    before = [0] * n
    for u, v in edges:
        if u > 0 and v <= n:
            before[v - 1] |= 1 << (u - 1)
    found, layer = {0}, [0]
    while layer:
        grown = set()
        for ideal in layer:
            for v in range(n):
                if not ideal >> v & 1 and before[v] & ~ideal == 0:
                    grown.add(ideal | 1 << v)
        found |= grown
        layer = list(grown)
        if len(found) > EFFORT.ideals:
            return None
    return np.array(sorted(found, key=lambda ideal: (ideal.bit_count(), ideal)), dtype=np.uint64)


def _members(ideals: Bits, n: int) -> Mask:
    """Return the sets as rows, shape (s, n)."""
    return np.asarray((ideals[:, None] >> np.arange(n, dtype=np.uint64)) & np.uint64(1) == 1)


def _sums(member: Mask, value: Floats) -> Floats:
    return np.asarray(np.where(member, value, 0.0).sum(axis=1))


def _cuts(member: Mask, nets: list[tuple[int, list[int], float]]) -> Floats:
    first, last = np.ones((len(member), 1), dtype=bool), np.zeros((len(member), 1), dtype=bool)
    inside = np.concatenate((first, member, last), axis=1)
    cut = np.zeros(len(member))
    for source, readers, cost in nets:
        cut += cost * (inside[:, source] & ~inside[:, readers].all(axis=1))
    return cut


def _opaque(best: Floats, edges: list[tuple[int, int]], paid: Floats, size: Floats) -> Block:
    """Return a block with two sets, none and all of the nodes, whose cuts cost nothing."""
    n = len(best)
    path = np.zeros(n + 2)
    for u, v in sorted(edges, key=lambda edge: edge[1]):
        path[v] = max(path[v], path[u] + (best[v - 1] if v <= n else 0.0))
    between = np.array([[0.0, path[n + 1]], [np.inf, 0.0]])
    everything = np.array([0, np.iinfo(np.uint64).max], dtype=np.uint64)
    full = np.array([0.0, paid.sum()]), np.array([0.0, size.sum()]), np.array([paid.sum(), 0.0])
    may = np.ones(2, dtype=bool)
    return Block(everything, *full, np.zeros(2), may, may, between)


BYTES = 48  # for each pair of separators, including temporary arrays


def serial_bound(problem: SampleProblem, flow: Flow, spine: Spine, settings: Settings) -> float:
    """Return the length of the shortest sequence along a spine; 0 if its sums would take too much memory.

    Raises
    ------
    OutOfTimeError
        If the run should end.
    """
    if len(spine.separators) ** 2 * BYTES > settings.memory_budget:
        return 0.0
    flow = with_group_members(flow, spine, settings)
    far, leaving, coming = _far_nets(flow, spine, settings)
    additive = problem.communication == "sequential"
    blocks = (block_of(flow, spine, k, far, additive) for k in settings.watched(range(len(spine.inner))))
    paid, free, size = (each[spine.separators] for each in (flow.paid, flow.free, flow.size))
    memory = problem.memory[problem.pays & (problem.count > 0)].max(initial=0.0) * (1 + 1e-12)
    if not (problem.pays & (problem.count > 0)).any():
        paid = np.full(len(paid), np.inf)
    sides = _sides(flow, spine, memory)
    return _walk(blocks, (paid, free, size), (leaving, coming), sides, memory, problem.communication)


def _sides(flow: Flow, spine: Spine, memory: float) -> dict[int, list[Floats]]:
    """Return choices for the largest nodes off the spine, by the position of their first reader.

    The two rows of a choice are added to the transfers in, work and size of the reader's subgraph: if the
    node's net is moved in, and if the node is in the subgraph.
    """
    place = spine.places(len(flow.size))
    moved: dict[tuple[int, int], float] = {}
    for source, readers, cost in flow.nets:
        first = min((int(place[v]) for v in readers if place[v] >= 0), default=-1)
        if place[source] < 0 <= first and flow.size[source] > EFFORT.smallest * memory:
            moved[source, first] = moved.get((source, first), 0.0) + cost
    chosen = sorted(moved, key=lambda side: -flow.size[side[0]])[: EFFORT.sides]
    sides: dict[int, list[Floats]] = {}
    for source, first in {source: (source, first) for source, first in reversed(chosen)}.values():
        choice = np.array([[moved[source, first], 0, 0], [0, flow.paid[source], flow.size[source]]])
        sides.setdefault(first, []).append(choice)
    return sides


def _with_sides(start: Floats, sides: list[Floats]) -> Floats:
    """Return every row combined with each of the choices."""
    for choice in sides:
        rows = np.repeat(start, 2, axis=0)
        rows[:, 1:4] += np.tile(choice, (len(start), 1))
        start = rows
    return start


def _far_nets(flow: Flow, spine: Spine, settings: Settings) -> tuple[set[int], Floats, Floats]:
    """Return the nets that pass over a separator, and the sums of them that a run of separators must move.

    Row a and column b of the sums stand for a subgraph from separator a to b: nets made in it and read
    beyond the next separator leave it, and nets read in it and made before the previous one enter it.
    """
    place = spine.places(len(flow.size)).tolist()
    m = len(spine.separators)
    far, leaving, coming = set(), np.zeros((m, m)), np.zeros((m, m))
    first, last = np.arange(m)[:, None], np.arange(m)[None, :]
    for e, (source, readers, cost) in settings.watched(enumerate(flow.nets)):
        made, read = place[source], max((place[v] for v in readers), default=-1)
        if made >= 0 and read > made // 2 * 2 + 2:
            far.add(e)
            leaving += cost * ((2 * first <= made) & (made <= 2 * last) & (read > 2 * last + 1))
            coming += cost * ((2 * first <= read) & (read <= 2 * last) & (made < 2 * first - 1))
    return far, leaving, coming


def _walk(
    blocks: Iterator[Block],
    separators: tuple[Floats, Floats, Floats],
    far: tuple[Floats, Floats],
    sides: dict[int, list[Floats]],
    memory: float,
    communication: str,
) -> float:
    (paid, free, size), (leaving, coming) = separators, far
    m = len(paid)
    start = np.zeros((1, 5))  # value, transfers in, work, size, first separator
    alone = free[0]
    for b in range(m):
        start[:, 2] += paid[b]
        start[:, 3] += size[b]
        start = _with_sides(start, sides.get(2 * b, []))
        start = start[(start[:, 3] <= memory) & (start[:, 2] < np.inf)]
        block = next(blocks, None)
        end = np.zeros((1, 3))
        if block is not None:
            end = np.stack((block.work, block.size, block.cut), axis=1)
            end[~block.ends, 1] = np.inf
        value = _ends(start, leaving[:, b], coming[:, b], end, memory, communication)
        if block is None:
            break
        new, alone = _over(block, value, alone, free[b + 1], b + 1)
        start[:, 2] += block.work[-1]
        start[:, 3] += block.size[-1]
        start = np.concatenate((_with_sides(start, sides.get(2 * b + 1, [])), new))
    return float(min(value[0], alone))


def _over(block: Block, value: Floats, alone: float, free: float, first: int) -> tuple[Floats, float]:
    """Return the subgraphs that begin in the block, and when the next separator ends if it runs alone."""
    before = value.copy()
    before[0] = min(before[0], alone)
    reached = (before[:, None] + block.between).min(axis=0)
    new = np.zeros((len(reached), 5))
    new[:, 0] = reached
    new[:, 1] = block.cut
    new[:, 2] = block.rest
    new[:, 3] = block.size[-1] - block.size
    new[:, 4] = first
    new = new[np.isfinite(reached) & np.isfinite(new[:, 2]) & block.begins]
    return new, float(reached[-1] + free)


def _ends(
    start: Floats, leaving: Floats, coming: Floats, end: Floats, memory: float, communication: str
) -> Floats:
    """Return the least finish of a subgraph that ends with each ideal, shape (ideals,)."""
    first = start[:, 4].astype(np.int64)
    work = start[:, 2, None] + end[:, 0]
    into, out = start[:, 1] + coming[first], end[:, 2] + leaving[first, None]
    finish = start[:, 0, None] + joint_loads(communication, work, into[:, None], out)
    fits = start[:, 3, None] + end[:, 1] <= memory
    return np.asarray(np.where(fits, finish, np.inf).min(axis=0, initial=np.inf))


def bound_of(problem: SampleProblem, settings: Settings) -> float:
    """Return the largest of the longest path and of serial bounds along the heaviest path.

    Each serial bound drops the edges that pass over more than a share of the path. It is a bound for a
    weakened graph, so all of them hold. Fewer are computed if the run must end.
    """
    best = longest_path(problem)
    if not problem.n or best == np.inf:
        return best
    with suppress(OutOfTimeError):
        for bound in _serial_bounds(problem, settings):
            best = max(best, bound)
    return best


def _serial_bounds(problem: SampleProblem, settings: Settings) -> Iterator[float]:
    """Yield the bounds along the spines on the heaviest path, the shortest reach first."""
    flow = flow_for(problem, settings)
    path = heaviest_path(flow, settings)
    seen = set()
    for reach in sorted({len(path), len(path) // 2, len(path) // 4, len(path) // 10, 12, 6, 2}):
        spine = spine_along(flow, path, max(reach, 1), settings)
        if tuple(spine.separators) not in seen:
            seen.add(tuple(spine.separators))
            yield serial_bound(problem, flow, spine, settings)
