"""Random graphs that look like networks, cut into stages."""

from __future__ import annotations

import numpy as np

from partitioner.workload.graph import Graph


def random_split(
    nodes: int, devices: int, training: bool = False, seed: int = 7
) -> tuple[Graph, dict[int, str]]:
    """A graph of blocks of branches with a chain's placement; for training half of the nodes go back."""
    draw = np.random.default_rng(seed)
    forward = nodes // 2 if training else nodes
    edges = [
        (int(source), i)
        for i in range(1, forward)
        for source in {i - 1 - int(draw.integers(0, min(i, 4))), i - 1 - int(draw.integers(0, min(i, 4)))}
    ]
    if training:
        edges += [(nodes - 1 - b, nodes - 1 - a) for a, b in edges if nodes - 1 - b >= forward]
        edges += [(i, nodes - 1 - i) for i in range(nodes - forward) if nodes - 1 - i >= forward]
    graph = Graph.from_arrays(
        {"accelerator": np.ones(nodes)}, edges, 0.5, backward=np.arange(nodes) >= forward
    )
    stage = np.arange(forward) * devices // forward
    stage = np.concatenate((stage, stage[: nodes - forward][::-1]))
    return graph, {i: f"accelerator{stage[i]}" for i in range(nodes)}
