"""The cuts of a block between two separators, and the least cost of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.latency.bounds.between import Bits, times_between
from partitioner.methods.latency.bounds.flow import Flow
from partitioner.methods.latency.bounds.spine import Spine
from partitioner.problem.arrays import Floats

WIDEST = 60
MOST_IDEALS = 4_000
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
    ideals = _ideals(len(inner), edges) if len(inner) <= WIDEST else None
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
        if len(found) > MOST_IDEALS:
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
