"""Small random workloads in which every feature of the model turns up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner import DeviceKind, Devices, Graph, WorkloadError
from partitioner.problem.fit import fit
from partitioner.workload.constraints import NONE
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.pass_order import with_pass_order
from partitioner.workload.resolved_constraints import demands_of

KINDS = ("gpu", "npu", "cpu")
TIMES = np.array([0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 3.5, 7.0])
COSTS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
SIZES = np.array([0.0, 0.0, 1.0, 2.0, 3.0])
FACTORS = np.array([0.25, 0.5, 1.0, 1.0, 1.5, 4.0])


def random_workload(
    rng: np.random.Generator, most_nodes: int = 10, most_devices: int = 3
) -> tuple[Graph, Devices]:
    """A graph of 1 to `most_nodes` nodes and 1 to `most_devices` devices of up to three kinds."""
    n = int(rng.integers(1, most_nodes + 1))
    backward = np.zeros(n, dtype=bool)
    if rng.random() < 0.6:
        backward[int(rng.integers(1, n + 1)) :] = True
    edges = _edges(rng, backward, rng.choice([0.15, 0.3, 0.6]))
    graph = Graph.from_arrays(
        _times(rng, n),
        edges,
        _costs(rng, edges),
        size=rng.choice(SIZES, n) if rng.random() < 0.7 else 0.0,
        backward=backward,
        allowed={kind: rng.random(n) < rng.choice([0.8, 1.0, 1.0]) for kind in KINDS},
        color=_colors(rng, backward),
    )
    return graph, _devices(rng, float(graph.size.sum()), most_devices)


def uneven_workload(
    rng: np.random.Generator, most_nodes: int = 10, most_devices: int = 3
) -> tuple[Graph, Devices]:
    """As :func:`random_workload`, mostly with kinds that differ by factors or take another kind's times."""
    graph, devices = random_workload(rng, most_nodes, most_devices)
    return graph, replace(devices, kinds=tuple(_uneven(rng, kind) for kind in devices.kinds))


def fitted(graph: Graph, devices: Devices) -> Graph:
    """The graph as the devices run it."""
    return fit(graph, devices, demands_of(graph, devices, NONE))


def in_known_order(graph: Graph) -> Graph:
    """The graph for makespans: with edges between the passes, or with a forward pass alone."""
    try:
        return with_pass_order(graph)
    except WorkloadError:
        return replace(graph, backward=np.zeros(len(graph), dtype=bool))


def _uneven(rng: np.random.Generator, kind: DeviceKind) -> DeviceKind:
    """Now and then a kind of a name that the graph does not know."""
    if rng.random() < 0.3:
        return kind
    times = str(rng.choice(KINDS)) if rng.random() < 0.4 else kind.row
    name = f"{kind.name}-new" if rng.random() < 0.3 else kind.name
    time_factor, transfer_factor = rng.choice(FACTORS, 2).tolist()
    return replace(kind, name=name, times=times, time_factor=time_factor, transfer_factor=transfer_factor)


def _times(rng: np.random.Generator, n: int) -> dict[str, list[float]]:
    if rng.random() < 0.3:
        return {kind: rng.exponential(1.0, n).tolist() for kind in KINDS}
    fast = rng.choice(TIMES, n)
    slow = fast * rng.choice([1.0, 2.0, 10.0])
    return {"gpu": fast.tolist(), "npu": rng.choice(TIMES, n).tolist(), "cpu": slow.tolist()}


def _edges(rng: np.random.Generator, backward: np.ndarray, density: float) -> list[tuple[int, int]]:
    """Edges from lower to higher numbers, so that there is no cycle; forward nodes come first."""
    n = len(backward)
    return [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < density]


def _costs(rng: np.random.Generator, edges: list[tuple[int, int]]) -> list[float]:
    """One cost a producer, or now and then one an edge; small ones on the whole or large ones."""
    scale = rng.choice([0.01, 0.3, 1.0])
    of_node = rng.choice(COSTS, 32) * scale
    of_edge = rng.choice(COSTS, len(edges)) * scale
    mixed = rng.random(32) < 0.15
    return [float(of_edge[i] if mixed[u] else of_node[u]) for i, (u, _) in enumerate(edges)]


def _colors(rng: np.random.Generator, backward: np.ndarray) -> list[int | None]:
    """Backward nodes mostly share a forward node's class, some are orphans; few forward pairs."""
    forward = int((~backward).sum())
    classes = max(1, round(forward * rng.choice([0.6, 1.0, 2.0])))
    share = rng.choice([0.0, 0.4, 0.9])
    colors = [int(rng.integers(classes)) if rng.random() < share else None for _ in backward]
    orphans = rng.random(len(backward)) < 0.2
    lost = (backward & orphans).tolist()
    return [50 + i % 2 if lost[i] else color for i, color in enumerate(colors)]


def _devices(rng: np.random.Generator, total: float, most: int) -> Devices:
    left = int(rng.integers(1, most + 1))
    counts = []
    for _ in KINDS:
        counts.append(int(rng.integers(0, left + 1)))
        left -= counts[-1]
    counts[int(rng.integers(3))] += left
    tight = rng.random() < 0.5
    kinds = tuple(
        DeviceKind(
            name,
            count,
            memory=float(np.ceil(total * rng.uniform(0.3, 1.1))) if tight and rng.random() < 0.7 else None,
            pays_communication=name != "cpu",
        )
        for name, count in zip(KINDS, counts, strict=True)
    )
    return Devices(kinds, str(rng.choice(COMMUNICATION_MODELS)))
