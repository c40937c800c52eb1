"""Random workloads: small ones for the exhaustive search, and a large one that takes a method some time."""

from __future__ import annotations

import random

from partitioner.workload.devices import COMMUNICATION_MODELS, DeviceKind, Devices
from partitioner.workload.graph import Graph

TIMES = (0.0, 0.5, 1.0, 1.0, 2.0, 3.5, 7.0)
COSTS = (0.0, 0.25, 0.5, 1.0, 4.0)
SIZES = (0.0, 1.0, 2.0, 3.0)
LARGE = 60  # nodes of the large workload


def small_workload(seed: int, most_nodes: int = 6) -> tuple[Graph, Devices]:
    """Return a graph of at most `most_nodes` nodes, and one to three devices.

    Some workloads have a backward node for every forward node, little memory, nodes that run on one kind
    only, or a device that does not pay for transfers. Some have no plan.

    Examples
    --------
    >>> graph, devices = small_workload(7)
    >>> len(graph), devices.names
    (3, ('gpu0', 'gpu1'))
    """
    rng = random.Random(seed)
    nodes = rng.randint(1, most_nodes)
    forward, backward = (nodes // 2, nodes // 2) if nodes > 1 and rng.random() < 0.5 else (nodes, 0)
    graph = _graph(rng, forward, backward, density=rng.choice((0.3, 0.6)), everywhere=False)
    return graph, _devices(rng, float(graph.size.sum()))


def large_workload(seed: int) -> tuple[Graph, Devices]:
    """Return a graph of :data:`LARGE` forward nodes, and four devices with half its size as memory each."""
    rng = random.Random(seed)
    graph = _graph(rng, LARGE, 0, density=4 / LARGE, everywhere=True)
    memory = float(graph.size.sum()) / 2
    return graph, Devices((DeviceKind("gpu", 4, memory=memory),))


def _graph(rng: random.Random, forward: int, backward: int, density: float, everywhere: bool) -> Graph:
    """Return a graph of forward nodes, and of mirrored backward nodes of the same colours after them."""
    pairs = [(u, v) for v in range(forward) for u in range(v) if rng.random() < density]
    cost = {node: rng.choice(COSTS) for node in range(forward + backward)}
    edges = list(pairs)
    if backward:
        twin = {node: 2 * forward - 1 - node for node in range(forward)}
        edges += [(twin[v], twin[u]) for u, v in pairs]
        edges += [(node, twin[node]) for node in range(forward)]
    gpu = [rng.choice(TIMES) for _ in range(forward + backward)]
    only = [0.5 if everywhere else rng.random() for _ in range(forward)]
    colour = [*range(forward), *reversed(range(forward))][: forward + backward]
    return Graph.from_arrays(
        {"gpu": gpu, "cpu": [4.0 * time for time in gpu]},
        edges,
        [cost[source] for source, _ in edges],
        size=[rng.choice(SIZES) for _ in gpu],
        backward=[node >= forward for node in range(forward + backward)],
        allowed={"gpu": [only[c] > 0.05 for c in colour], "cpu": [only[c] < 0.9 for c in colour]},
        color=colour if backward else None,
    )


def _devices(rng: random.Random, total: float) -> Devices:
    gpus, cpus = rng.choice(((1, 0), (2, 0), (2, 0), (3, 0), (1, 1), (2, 1)))
    memory = float(round(total * rng.uniform(0.3, 1.0))) if rng.random() < 0.5 else None
    kinds = (DeviceKind("gpu", gpus, memory=memory), DeviceKind("cpu", cpus, pays_communication=False))
    return Devices(kinds[: 1 + (cpus > 0)], rng.choice(COMMUNICATION_MODELS))
