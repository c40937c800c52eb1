"""Random workloads that are nearly a series of blocks, as networks are, with some nodes beside it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from partitioner import DeviceKind, Devices, Graph
from partitioner.workload.devices import COMMUNICATION_MODELS

Edges = list[tuple[int, int]]


def near_serial_workload(rng: np.random.Generator) -> tuple[Graph, Devices]:
    """Two to four blocks of up to two branches, two or three accelerators with little memory, and CPUs."""
    edges, n = _edges(rng)
    time = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], n)
    cost = rng.choice([0.0, 0.5, 1.0, 2.0, 4.0], n) * rng.choice([0.3, 1.0, 3.0])
    size = rng.choice([0.0, 1.0, 1.0, 2.0, 3.0], n)
    share = rng.choice([0.0, 0.5])
    graph = Graph.from_arrays(
        {"accelerator": time.tolist(), "cpu": (time * rng.choice([2.0, 10.0])).tolist()},
        edges,
        [float(cost[u]) for u, _ in edges],
        size=size,
        color=[int(rng.integers(n)) if rng.random() < share else None for _ in range(n)],
    )
    count = int(rng.integers(2, 4))
    memory = float(np.ceil(size.sum() / count * rng.uniform(1.0, 2.0)))
    kinds = (
        DeviceKind("accelerator", count, memory=memory),
        DeviceKind("cpu", int(rng.integers(0, 3)), pays_communication=False),
    )
    return graph, Devices(kinds, str(rng.choice(["sequential", *COMMUNICATION_MODELS])))


def _edges(rng: np.random.Generator) -> tuple[Edges, int]:
    edges: set[tuple[int, int]] = set()
    last, n = 0, 1
    for _ in range(int(rng.integers(2, 5))):
        ends = []
        for length in rng.integers(0, 3, int(rng.integers(1, 3))).tolist():
            nodes = [last, *range(n, n + length)]
            edges |= set(pairwise(nodes))
            ends.append(nodes[-1])
            n += length
        edges |= {(end, n) for end in ends}
        last, n = n, n + 1
    if rng.random() < 0.4:
        edges.add((0, last))
    for _ in range(int(rng.integers(0, 3))):
        v = int(rng.integers(0, n))
        edges.add((n, v) if rng.random() < 0.5 else (v, n))
        n += 1
    return sorted(edges), n
