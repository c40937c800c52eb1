"""Graphs of 1 to 20,000 nodes in the shapes that people meet, and a simple chain of each to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import partitioner as pt

Rng = np.random.Generator
Edges = list[tuple[int, int]]
MOST, MOST_COMPLETE = 20_000, 300
KINDS = ("accelerator", "cpu")


def path(n: int, rng: Rng) -> Edges:
    """One node after another."""
    return [(i, i + 1) for i in range(n - 1)]


def star(n: int, rng: Rng) -> Edges:
    """One node that feeds all others."""
    return [(0, i) for i in range(1, n)]


def layered(n: int, rng: Rng) -> Edges:
    """Layers of equal width; each node reads two of the layer before."""
    width = max(1, int(n ** rng.uniform(0.2, 0.6)))
    return sorted(
        {
            (int(rng.integers(v - v % width - width, v - v % width)), v)
            for v in range(width, n)
            for _ in (0, 1)
        }
    )


def complete(n: int, rng: Rng) -> Edges:
    """Every node feeds all later ones."""
    return [(u, v) for u in range(n) for v in range(u + 1, n)]


def scattered(n: int, rng: Rng) -> Edges:
    """About one or two inputs for every node, from anywhere before it."""
    count = int(n * rng.uniform(0.5, 2.0))
    ends = np.sort(rng.integers(0, n, (count, 2)), axis=1)
    return sorted({(int(u), int(v)) for u, v in ends.tolist() if u < v})


SHAPES: dict[str, Callable[[int, Rng], Edges]] = {
    "path": path,
    "star": star,
    "layered": layered,
    "complete": complete,
    "random": scattered,
    "training": path,
}


def some_graph(shape: str, n: int, rng: Rng) -> pt.Graph:
    """A graph of about n nodes with random times, costs and sizes; CPUs are ten times slower."""
    half = -(-n // 2)
    edges = SHAPES[shape](min(n, MOST_COMPLETE) if shape == "complete" else n, rng)
    count = min(n, MOST_COMPLETE) if shape == "complete" else n
    given: dict[str, Any] = {}
    if shape == "training":
        count = 2 * half
        edges = path(count, rng) + [(i, count - 1 - i) for i in range(half - 1)]
        given = {
            "backward": [i >= half for i in range(count)],
            "color": [min(i, count - 1 - i) for i in range(count)],
            "activations": rng.exponential(0.1, count),
        }
    cost_of = rng.exponential(0.3, count)
    time = rng.exponential(1.0, count)
    return pt.Graph.from_arrays(
        {KINDS[0]: time, KINDS[1]: 10 * time},
        edges,
        [float(cost_of[u]) for u, _ in edges],
        size=rng.exponential(1.0, count),
        **given,
    )


def some_devices(graph: pt.Graph, memory: str, rng: Rng) -> pt.Devices:
    """Accelerators with more than enough memory, hardly enough or too little; CPUs only with enough."""
    count = int(rng.choice([1, 2, 3, 4, 8, 16]))
    needed = float(graph.size.sum() + graph.parts.sum())
    room = {"loose": None, "tight": 1.15 * needed / count, "infeasible": 0.8 * needed / count}[memory]
    cpus = int(rng.integers(0, 3)) if memory == "loose" else 0
    return pt.Devices.accelerated(count, memory=room, cpus=cpus)


def filled_chain(graph: pt.Graph, devices: pt.Devices) -> dict[int | str, str] | None:
    """A chain by filling one accelerator after another to an even share of the work; None if memory runs out.

    Nodes of a colour go together, in the order of their first node.
    """
    kind = devices.kinds[0]
    units: dict[int, list[int]] = {}
    for v, c in enumerate(graph.color.tolist()):
        units.setdefault(c if c >= 0 else len(graph) + v, []).append(v)
    share = float(graph.time[0].sum()) / max(1, kind.count)
    device, load, held = 0, 0.0, 0.0
    found: dict[int | str, str] = {}
    for nodes in units.values():
        time = float(graph.time[0, nodes].sum())
        size = float(graph.size[nodes].sum() + graph.parts[:, nodes].sum())
        if held and (
            held + size > kind.memory_limit or (load + time / 2 > share and device + 1 < kind.count)
        ):
            device, load, held = device + 1, 0.0, 0.0
        if device >= kind.count or size > kind.memory_limit:
            return None
        load, held = load + time, held + size
        found |= {graph.ids[v]: kind.device(device) for v in nodes}
    return found
