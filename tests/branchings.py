"""Branchings by their definition, and random graphs that have them; no code of the package's is used."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx
import numpy as np

Edges = list[tuple[int, int]]


def random_edges(rng: np.random.Generator, n: int) -> Edges:
    """Edges from lower to higher numbers, few or many."""
    density = rng.choice([0.15, 0.3, 0.5])
    return [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < density]


def series_parallel_edges(rng: np.random.Generator, most_nodes: int) -> Edges:
    """The edges between one source 0 and one sink, the highest number: an edge, subdivided and doubled."""
    edges, n = [(0, 1)], 2
    while n < most_nodes:
        u, v = edges[int(rng.integers(len(edges)))]
        if rng.random() < 0.5:
            edges.remove((u, v))
        edges += [(u, n), (n, v)]
        n += 1
    order = list(nx.topological_sort(nx.DiGraph(edges)))
    number = {node: place for place, node in enumerate(order)}
    return [(number[u], number[v]) for u, v in edges]


def two_terminal_edges(rng: np.random.Generator, n: int) -> Edges:
    """Edges such that node 0 reaches every node and every node reaches the last."""
    edges = {(int(rng.integers(v)), v) for v in range(1, n)}
    edges |= {(u, int(rng.integers(u + 1, n))) for u in range(n - 1)}
    return sorted(edges)


def blocks_by_definition(n: int, edges: Edges, idle: Collection[int]) -> list[int]:
    """A label for every node: tails of edges that lie on a common undirected cycle share one."""
    readers = {v: {b for a, b in edges if a == v} for v in range(n)}
    read = {v: {a for a, b in edges if b == v} for v in range(n)}
    shared = {v for v in idle if len(readers[v]) > 1}
    aside = {v for v in shared if not read[v] or not any(read[w] <= shared for w in readers[v])}
    drawn = nx.Graph([(a, b) for a, b in edges if a not in aside])
    label = list(range(n))
    for cycle in nx.simple_cycles(drawn):
        sides = zip(cycle, cycle[1:] + cycle[:1], strict=True)
        merged = {label[a if (a, b) in edges else b] for a, b in sides}
        label = [min(merged) if mine in merged else mine for mine in label]
    return label
