"""Random tasks, straight in arrays: ties, zeros, groups, forbidden devices, tight memory, contention."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner import DeviceKind, Devices, Graph, Transfers
from partitioner.problem.tasks import Tasks, tasks_of
from partitioner.workload.topological import topological

KINDS = ("gpu", "cpu")


def some_tasks(first: int, count: int, most: int = 14) -> Iterator[tuple[int, Tasks]]:
    """Seeds and the tasks made with them."""
    for seed in range(first, first + count):
        yield seed, random_tasks(np.random.default_rng(seed), most)


def random_tasks(rng: np.random.Generator, most: int = 14) -> Tasks:
    """From 1 to `most` tasks, on 1 to 4 devices of up to two kinds."""
    n = int(rng.integers(1, most + 1))
    density = rng.choice([0.1, 0.25, 0.5])
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < density]
    of_node, of_edge = rng.integers(0, 6, n), rng.integers(0, 6, len(edges))
    many = rng.random(n) < 0.2
    cost = [float(of_edge[e] if many[u] else of_node[u]) for e, (u, _) in enumerate(edges)]
    may = rng.random((2, n)) < rng.choice([0.9, 1.0, 1.0])
    may[0] |= ~may.any(axis=0)
    size = rng.integers(0, 4, n).astype(float)
    graph = Graph.from_arrays(
        {kind: rng.integers(0, 5, n).astype(float) for kind in KINDS},
        edges,
        cost,
        size=size,
        allowed={kind: may[k] for k, kind in enumerate(KINDS)},
    )
    group = rng.integers(n, size=n) if rng.random() < 0.5 else np.arange(n)
    return tasks_of(
        graph, _devices(rng, size.sum()), group, _transfers(rng), topological(graph.edges, len(graph))
    )


def _devices(rng: np.random.Generator, total: float) -> Devices:
    counts = [(1, 0), (2, 0), (3, 0), (4, 0), (2, 1), (3, 1)][int(rng.integers(6))]
    limits = [float(np.ceil(total * rng.uniform(0.3, 1.1))) if rng.random() < 0.6 else None for _ in counts]
    kinds = tuple(
        DeviceKind(name, number, memory=limit, pays_communication=name != "cpu")
        for name, number, limit in zip(KINDS, counts, limits, strict=True)
        if number
    )
    return Devices(kinds)


def _transfers(rng: np.random.Generator) -> Transfers:
    return Transfers(
        slope=float(rng.choice([0.0, 1.0, 2.0])),
        intercept=float(rng.choice([0.0, 0.0, 1.0])),
        contention=bool(rng.random() < 0.5),
    )
