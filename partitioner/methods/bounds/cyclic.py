"""A lower bound on the convex splits that are no chains.

The parts of a convex split can be ordered as the stages of a chain unless they wait for one another in a
cycle. Take the nodes s_0, s_1, ... that every other node precedes or follows. A contiguous part that holds
nodes before and after s_i holds s_i. Suppose that a part with s_i were in a cycle: the next part, which does
not hold s_i, lies after s_i as a whole, because a path from the part through a node before s_i would come
back to the part in s_i; the part before it in the cycle lies before s_i as a whole; and no edge leads from
what lies after s_i to what lies before it, so the cycle is not closed. Hence the parts of a cycle lie in one
block between two neighbours s_i and s_(i+1). There are two of them at least, and the other devices hold
everything outside the block. In the shortest such cycle, where paths lead from a to the next part and from
the next part's a' to the one after it, neither leads on to the other's ends: a block without two such paths,
whose first nodes are unordered and whose last nodes are, too, holds no cycle.

Without it 7 of the 16 published convex splits have a lower bound, or a proof that takes 12 times as long
(scripts/ablations.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import networkx as nx
import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Region
from partitioner.problem.variants import PartsProblem

MOST = 2_000  # nodes of a block in which paths are looked for


def least_cyclic(problem: PartsProblem, relaxation: Relaxation) -> float:
    """Return a lower bound on the value of every convex split whose parts no chain can order.

    Parameters
    ----------
    problem
        The problem.
    relaxation
        Its relaxation, whose multipliers bound the load of the devices outside a block.

    Returns
    -------
    float
        Infinity if every convex split is a chain; 0 if nothing is known: for free splits, for limits on
        pipelines, and where orphaned backward nodes order the stages of a chain.
    """
    if not _orders_alike(problem):
        return 0.0
    bounds = [
        _least_outside(problem, relaxation, held) for held in _held_by_blocks(problem.regions[0], problem.n)
    ]
    return min(bounds, default=np.inf)


def _orders_alike(problem: PartsProblem) -> bool:
    """Whether contiguous parts without a cycle are a chain: its precedence is that of the forward region."""
    chain = problem.chain
    same = chain.n == problem.n and np.array_equal(chain.member, problem.member)
    plain = problem.pipeline is None and len(problem.regions) > 0
    if not (same and plain and problem.contiguous[problem.count > 0].all()):
        return False
    owner, edges = problem.regions[0]
    known = set(map(tuple, owner[edges].tolist()))
    return all((u, v) in known for u in range(chain.n) for v in chain.successors.row(u).tolist())


def _held_by_blocks(region: Region, n: int) -> Iterator[Ints]:
    """Yield for every block that may hold a cycle the supernodes with a node outside of it."""
    digraph: nx.DiGraph[int] = nx.DiGraph()
    digraph.add_nodes_from(range(len(region.owner)))
    digraph.add_edges_from(region.edges.tolist())
    block = _blocks(digraph)
    for number in np.unique(block[block >= 0]).tolist():
        if _has_unordered_paths(digraph.subgraph(np.flatnonzero(block == number).tolist())):
            outside = np.zeros(n, dtype=bool)
            outside[region.owner[block != number]] = True
            yield np.flatnonzero(outside)


def _has_unordered_paths(block: nx.DiGraph[int]) -> bool:
    """Whether there are two paths whose first nodes are unordered, and whose last nodes are."""
    if len(block) > MOST:
        return True
    reach = np.asarray(nx.to_numpy_array(nx.transitive_closure_dag(block)))
    unordered = ((reach + reach.T + np.eye(len(reach))) == 0).astype(np.float64)
    return bool(((reach @ unordered @ reach.T) * unordered).any())


def _blocks(digraph: nx.DiGraph[int]) -> Ints:
    """Return the block of every node, -1 for the nodes that all others precede or follow."""
    block = np.zeros(len(digraph), dtype=np.int64)
    after, before = _followers(digraph), _followers(digraph.reverse(copy=False))
    number = 0
    for generation in nx.topological_generations(digraph):
        first = generation[0]
        ends = after.get(first, 0) + before.get(first, 0) == len(block) - 1
        number += ends
        block[generation] = -1 if ends else number
    return block


def _followers(digraph: nx.DiGraph[int]) -> dict[int, int]:
    """Return how many nodes follow each node that is alone in its generation: all of later generations."""
    followers, left = {}, len(digraph)
    for generation in nx.topological_generations(digraph):
        left -= len(generation)
        if len(generation) == 1:
            followers[generation[0]] = left
    return followers


def _least_outside(problem: PartsProblem, relaxation: Relaxation, held: Ints) -> float:
    """Return the least largest load with which all devices but two can take these supernodes."""
    need = float(relaxation.weight[held].sum())
    kinds = np.repeat(np.arange(len(problem.count)), np.minimum(problem.count, 2)).tolist()
    pairs = {pair for pair in combinations_with_replacement(kinds, 2) if _has(problem.count, pair)}
    return min((_load(problem, relaxation, need, pair) for pair in pairs), default=np.inf)


def _has(count: Ints, pair: tuple[int, int]) -> bool:
    return pair[0] != pair[1] or bool(count[pair[0]] >= 2)


def _load(problem: PartsProblem, relaxation: Relaxation, need: float, pair: tuple[int, int]) -> float:
    left: Ints = problem.count - np.bincount(pair, minlength=len(problem.count)).astype(np.int64)
    empty, full = (float(relaxation.capacity(load, left, problem.memory)) for load in (0.0, 1.0))
    if need <= empty:
        return 0.0
    return (need - empty) / (full - empty) if full > empty else np.inf
