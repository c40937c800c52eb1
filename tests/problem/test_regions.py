"""A region has exactly the paths of the user's graph, as far as parts of supernodes can tell."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Graph
from partitioner.methods.rules import _is_contiguous
from partitioner.problem.contract import region_of
from partitioner.problem.problem import Region


def graph_of(n: int, edges: list[tuple[int, int]], backward: object = False) -> Graph:
    return Graph.from_arrays({"x": np.ones(n)}, edges, backward=backward)  # type: ignore[arg-type]


def reach_of(graph: Graph, inside: np.ndarray) -> np.ndarray:
    """Which node reaches which other one over nodes inside."""
    reach = np.zeros((len(graph), len(graph)), dtype=bool)
    for u, v in graph.edges.tolist():
        reach[u, v] = inside[u] and inside[v]
    for via in range(len(graph)):
        reach |= np.outer(reach[:, via], reach[via])
    return reach


def returns(reach: np.ndarray, inside: np.ndarray, part: np.ndarray) -> bool:
    """Definition 3.1: does a path lead from the part to another node inside and back?"""
    mine, others = inside & part, inside & ~part
    leaves = reach[mine].any(axis=0)
    comes = reach[:, mine].any(axis=1)
    return bool((leaves & others & comes).any())


def edges_of(region: Region) -> set[tuple[int, int]]:
    """The edges by the supernodes that they join."""
    return {(int(region.owner[u]), int(region.owner[v])) for u, v in region.edges}


def test_a_path_within_one_supernode_is_one_node() -> None:
    """0 -> 1 -> 2 -> 3 where 1 and 2 are together: three nodes and two edges are left."""
    region = region_of(graph_of(4, [(0, 1), (1, 2), (2, 3)]), np.array([0, 1, 1, 2]), backward=False)
    assert sorted(region.owner.tolist()) == [0, 1, 2]
    assert edges_of(region) == {(0, 1), (1, 2)}


def test_a_colour_class_is_not_merged_into_one_node() -> None:
    """0 -> 1 and 2 -> 3 with 1 and 2 in one supernode: no path leads from 0 to 3, none is invented."""
    region = region_of(graph_of(4, [(0, 1), (2, 3)]), np.array([0, 1, 1, 2]), backward=False)
    assert len(region.owner) == 4
    assert edges_of(region) == {(0, 1), (1, 2)}
    reached = {int(v) for _, v in region.edges}
    assert reached.isdisjoint(int(u) for u, _ in region.edges)


def test_only_one_pass_is_in_a_region() -> None:
    """Forward 0 -> 1, backward 2 -> 3; the edge between the passes is in neither region."""
    graph = graph_of(4, [(0, 1), (1, 2), (2, 3)], [False, False, True, True])
    member = np.arange(4)
    assert edges_of(region_of(graph, member, backward=False)) == {(0, 1)}
    assert edges_of(region_of(graph, member, backward=True)) == {(2, 3)}


def test_a_pass_without_nodes_has_an_empty_region() -> None:
    region = region_of(graph_of(2, [(0, 1)]), np.arange(2), backward=True)
    assert region.owner.shape == (0,) and region.edges.shape == (0, 2)
    assert _is_contiguous(region, np.zeros(2, dtype=np.int64), 0)


@pytest.mark.parametrize(("seed", "count"), [(1, 300), pytest.param(0, 1500, marks=pytest.mark.slow)])
def test_verdicts_are_those_of_the_users_graph(seed: int, count: int) -> None:
    """On random graphs, classes and parts, for both passes; both verdicts turn up often."""
    rng = np.random.default_rng(seed)
    torn = shrunk = 0
    for _ in range(count):
        n = int(rng.integers(2, 13))
        edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 2.0 / n]
        graph = graph_of(n, edges, np.arange(n) >= rng.integers(1, n + 1))
        member = rng.integers(0, rng.integers(1, n + 1), n)
        number = rng.integers(0, 2, n)
        for backward in (False, True):
            inside = graph.backward == backward
            region = region_of(graph, member, backward)
            expected = returns(reach_of(graph, inside), inside, number[member] == 0)
            assert _is_contiguous(region, number, 0) != expected
            torn += expected
            shrunk += len(region.owner) < int(inside.sum())
    assert torn > count / 15
    assert shrunk > count / 3
