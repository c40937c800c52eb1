"""Graphs of any size and of shapes that are hard on a program: for tests of time limits."""

from __future__ import annotations

import numpy as np

from partitioner import Graph
from partitioner.workload.graph import Ints

SHAPES = ("path", "star_in", "star_out", "grid", "layered", "sparse", "complete")
WIDTH = 20  # nodes of a layer


def edges_of(shape: str, n: int) -> Ints:
    """Shape (m, 2): the edges of about `n` nodes."""
    node = np.arange(n)
    if shape == "path":
        return np.stack((node[:-1], node[1:]), axis=1)
    if shape == "star_in":
        return np.stack((node[:-1], np.full(n - 1, n - 1)), axis=1)
    if shape == "star_out":
        return np.stack((np.zeros(n - 1, dtype=np.int64), node[1:]), axis=1)
    if shape == "complete":
        return np.stack(np.triu_indices(n, 1), axis=1)
    if shape == "grid":
        cell = np.arange(int(n**0.5) ** 2).reshape(int(n**0.5), -1)
        pairs = ((cell[:-1], cell[1:]), (cell[:, :-1], cell[:, 1:]))
        return np.concatenate([np.stack((u.ravel(), v.ravel()), axis=1) for u, v in pairs])
    if shape == "layered":
        layer = np.arange(n // WIDTH * WIDTH).reshape(-1, WIDTH)
        return np.stack((np.repeat(layer[:-1], WIDTH), np.tile(layer[1:], WIDTH).ravel()), axis=1)
    ends = np.sort(np.random.default_rng(0).integers(0, n, (3 * n, 2)), axis=1)
    return np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)


def large_graph(shape: str, n: int) -> Graph:
    """A graph of the shape with about `n` nodes, each with one tensor; a CPU takes ten times as long."""
    edges, rng = edges_of(shape, n), np.random.default_rng(1)
    count = int(edges.max()) + 1
    time, sent = rng.integers(1, 10, count).astype(float), rng.integers(1, 20, count) / 10
    return Graph.from_arrays(
        {"accelerator": time, "cpu": 10 * time}, edges.tolist(), sent[edges[:, 0]], size=1.0
    )
