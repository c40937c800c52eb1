"""Layers follow the longest paths, nodes of a layer keep their distance, and sweeps untangle edges."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from partitioner.analysis.plots.layered import heights, layered, longest_paths
from partitioner.workload.graph import Graph
from tests.analysis.plots.graphs import random_split


@pytest.mark.parametrize("seed", range(5))
def test_edges_lead_to_the_right(seed: int) -> None:
    """In the forward pass; in the backward pass, which lies below, to the left."""
    graph, _ = random_split(200, 4, training=True, seed=seed)
    place = layered(graph)
    source, target = graph.edges.T
    step = place[target, 0] - place[source, 0]
    forward, backward = (~graph.backward[graph.edges]).all(axis=1), graph.backward[graph.edges].all(axis=1)
    assert (step[forward] >= 1).all() and (step[backward] < 0).all()
    assert place[graph.backward, 1].max() <= place[~graph.backward, 1].min() - 2 + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_layers_are_longest_paths(seed: int) -> None:
    """The last layer is the longest path of the graph, and a node's only successor is never before it."""
    graph, _ = random_split(100, 1, seed=seed)
    layer = longest_paths(100, graph.edges)
    digraph: nx.DiGraph[int] = nx.DiGraph(graph.edges.tolist())
    assert layer.max() == nx.dag_longest_path_length(digraph, weight="none", default_weight=1)
    assert (layer[graph.edges[:, 0]] < layer[graph.edges[:, 1]]).all()


def test_a_late_input_stands_before_its_user() -> None:
    layer = longest_paths(5, np.array([(0, 1), (1, 2), (2, 3), (4, 3)]))
    assert layer.tolist() == [0, 1, 2, 3, 2]


@pytest.mark.parametrize("seed", range(5))
def test_nodes_of_a_layer_keep_their_distance(seed: int) -> None:
    draw = np.random.default_rng(seed)
    layer = np.sort(draw.integers(0, 6, 60))
    edges = draw.integers(0, 60, (90, 2))
    edges = edges[layer[edges[:, 0]] < layer[edges[:, 1]]]
    height = heights(layer, edges)
    for number in range(6):
        assert np.diff(np.sort(height[layer == number])).min() >= 1 - 1e-9


def test_sweeps_untangle() -> None:
    """Ten paths whose nodes are numbered at random: no two of them cross in the end."""
    draw = np.random.default_rng(3)
    rows = np.stack([draw.permutation(10) + 10 * k for k in range(5)])
    edges = np.concatenate([np.stack((a, b), axis=1) for a, b in pairwise(rows)])
    height = heights(np.arange(50) // 10, edges)
    order = np.argsort(height[rows], axis=1)
    assert (order == order[0]).all()
    tangled = np.argsort(rows, axis=1)
    assert (tangled != tangled[0]).any()


def test_small_graphs() -> None:
    """A single node; only backward nodes, which then run like forward ones."""
    assert layered(Graph.from_arrays({"gpu": [1.0]}, [])).tolist() == [[0, 0]]
    alone = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], backward=[True, True])
    assert layered(alone)[:, 0].tolist() == [0, 1]
