"""Nodes on a common cycle, directions aside, share a block; tensors of side layers close no cycle."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from partitioner.methods.baselines.branchings import branchings
from partitioner.problem.arrays import Ints, rows_of
from tests.branchings import Edges, blocks_by_definition, random_edges


def blocks_of(n: int, edges: Edges, idle: set[int] | frozenset[int] = frozenset()) -> Ints:
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return branchings(rows_of(source, target, n), np.isin(np.arange(n), list(idle)))


def test_blocks_are_those_of_the_definition() -> None:
    """On random graphs; then what feeds one another is one block, and numbers rise along every edge."""
    several = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        edges = random_edges(rng, n)
        idle = {v for v in range(n) if rng.random() < 0.4}
        block = blocks_of(n, edges, idle)
        together = blocks_by_definition(n, edges, idle)
        graph = nx.DiGraph([(together[u], together[v]) for u, v in edges])
        graph.add_nodes_from(together)
        parts = [{v for v in range(n) if together[v] in c} for c in nx.strongly_connected_components(graph)]
        assert {frozenset(part) for part in parts} == {
            frozenset(np.flatnonzero(block == b).tolist()) for b in range(int(block.max()) + 1)
        }, seed
        assert all(block[u] <= block[v] for u, v in edges), seed
        several += 1 < len(parts) < n
    assert several > 50


@pytest.mark.parametrize("idle", [{0}, {0, 5}])
def test_a_mask_that_all_layers_read_is_no_branching(idle: set[int]) -> None:
    """Node 0 feeds every layer of 1 -> 2 -> 3 -> 4: one block if it takes time, else a path."""
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert blocks_of(6, edges, idle).tolist() == [0, 1, 2, 3, 4, 5]
    assert blocks_of(6, edges).tolist() == [0, 0, 0, 0, 1, 2]


def test_a_context_that_all_layers_read_is_no_branching() -> None:
    """Node 1 hands on what 0 made to 3 and 4, which read one another's results too."""
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 4)]
    assert len(set(blocks_of(5, edges, {1}).tolist())) == 5
    assert blocks_of(5, edges).tolist() == [0, 0, 0, 0, 1]


def test_a_sum_that_goes_on_in_two_ways_is_a_branching() -> None:
    """Node 1 takes no time, but 2 reads nothing else: a residual connection stays whole."""
    edges = [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4)]
    assert blocks_of(5, edges, {1, 3}).tolist() == [0, 1, 1, 2, 3]


def test_two_contexts_do_not_excuse_one_another() -> None:
    """Nodes 1 and 2, both without time, feed 3 and 4, which read nothing else: a branching."""
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4)]
    assert len(set(blocks_of(5, edges, {1, 2})[:3].tolist())) == 1


def test_what_feeds_one_another_is_one_block() -> None:
    """The mask 2 is computed inside the branching of 0, 1 and 3, and read there: it cannot leave it."""
    edges = [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (0, 4)]
    assert blocks_of(5, edges, {2}).tolist() == [0, 0, 0, 0, 1]
