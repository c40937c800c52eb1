"""A layout of the nodes of a graph: in layers by longest path, with few crossings of edges."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.workload.graph import Floats, Graph, Ints

SWEEPS = 8
BAND = 2.0
LEVEL = 0.9  # below 1, so that the strip stays level


def layered(graph: Graph) -> Floats:
    """Return positions of the nodes from left to right along the longest paths, shape (n, 2).

    Notes
    -----
    The backward pass, if there is one, is drawn below and from right to left, so that a backward node is
    about below its forward node. The order within a layer comes from sweeps in both directions, in which
    every node moves to the mean height of its neighbours in other layers.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 1.0, 1.0]}, [(0, 1), (0, 2)])
    >>> layered(graph)[:, 0]
    array([0., 1., 1.])
    """
    forward, backward = np.flatnonzero(~graph.backward), np.flatnonzero(graph.backward)
    both = len(forward) > 0 and len(backward) > 0
    place = np.zeros((len(graph), 2))
    for nodes, against in ((forward, False), (backward, both)):
        if len(nodes):
            place[nodes] = _part(graph, nodes, against)
    if both:
        place[backward, 0] *= place[forward, 0].max() / max(1.0, place[backward, 0].max())
        place[backward, 1] += place[forward, 1].min() - place[backward, 1].max() - BAND
    return place


def _part(graph: Graph, nodes: Ints, against: bool) -> Floats:
    """Return the positions of the nodes of one pass, with reversed edges if `against` is True."""
    number = np.full(len(graph), -1)
    number[nodes] = np.arange(len(nodes))
    edges = number[graph.edges]
    edges = edges[(edges >= 0).all(axis=1)]
    edges = edges[:, ::-1] if against else edges
    layer = longest_paths(len(nodes), edges)
    return np.stack((layer.astype(np.float64), heights(layer, edges)), axis=1)


def longest_paths(count: int, edges: Ints) -> Ints:
    """Return the layer of each node, shape (count,): the number of edges on the longest path to it.

    A node without inputs is in the layer before its first consumer.
    """
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges.tolist())
    layer = np.zeros(count, dtype=np.int64)
    for number, nodes in enumerate(nx.topological_generations(graph)):
        layer[nodes] = number
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, edges[:, 0], layer[edges[:, 1]])
    late = (np.bincount(edges[:, 1], minlength=count) == 0) & (np.bincount(edges[:, 0], minlength=count) > 0)
    return np.where(late, first - 1, layer)


def heights(layer: Ints, edges: Ints) -> Floats:
    """Return the height of each node, shape (n,); heights within a layer are at least 1 apart."""
    height = np.zeros(len(layer))
    sweeps = [_sweep(layer, edges), _sweep(layer, edges[:, ::-1])[::-1]]
    for row, _, _ in sweeps[0]:
        height[row] = _spread(height[row])
    for number in range(SWEEPS):
        for row, neighbour, member in sweeps[number % 2]:
            count = np.bincount(member, minlength=len(row))
            total = np.bincount(member, height[neighbour], len(row))
            wanted = np.where(count > 0, total / np.maximum(1, count), height[row])
            height[row] = _spread(wanted * LEVEL)
    return height


def _sweep(layer: Ints, edges: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Return for each layer its nodes, and for each edge into it the source and the target's index there."""
    order = np.argsort(layer, kind="stable")
    start = np.searchsorted(layer[order], np.arange(layer.max(initial=-1) + 2))
    within = np.zeros(len(layer), dtype=np.int64)
    within[order] = np.arange(len(order)) - start[layer[order]]
    edges = edges[np.argsort(layer[edges[:, 1]], kind="stable")]
    cut = np.searchsorted(layer[edges[:, 1]], np.arange(len(start)))
    return [
        (order[start[k] : start[k + 1]], part[:, 0], within[part[:, 1]])
        for k, part in enumerate(np.split(edges, cut[1:-1]))
        if start[k] < start[k + 1]
    ]


def _spread(wanted: Floats) -> Floats:
    """Return the heights closest to `wanted`, in its order and at least 1 apart (isotonic regression)."""
    order, steps = np.argsort(wanted, kind="stable"), np.arange(len(wanted))
    blocks: list[tuple[float, int]] = []
    for value in (wanted[order] - steps).tolist():
        total, count = value, 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    found = np.zeros(len(wanted))
    found[order] = (
        np.repeat([total / count for total, count in blocks], [count for _, count in blocks]) + steps
    )
    return found
