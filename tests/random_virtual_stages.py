"""Small random pipelines with several stages on a device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partitioner import Alternative, Alternatives, DeviceKind, Devices, Graph
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.virtual_stages.schedules import VIRTUAL

TIMES = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.5])
COSTS = np.array([0.0, 0.25, 0.5, 1.0, 2.0])
SIZES = np.array([0.0, 1.0, 2.0, 3.0])


@dataclass(frozen=True)
class VirtualCase:
    """A workload, and what is asked for."""

    graph: Graph
    devices: Devices
    schedule: str
    chunks: int
    microbatches: int
    constraints: Constraints = NONE

    @property
    def options(self) -> dict[str, Any]:
        """The options of `solve`."""
        given = {"schedule": self.schedule, "virtual_stages": self.chunks, "microbatches": self.microbatches}
        return given | {"constraints": self.constraints}


def random_virtual_case(rng: np.random.Generator, schedule: str) -> VirtualCase:
    """A path, or a graph with branches and tensors that skip stages; mostly with a backward pass."""
    devices, chunks = _devices_and_chunks(rng, schedule)
    n = int(rng.integers(max(1, devices * chunks - 2), min(10, devices * chunks + 4) + 1))
    path = n > 7 or rng.random() < 0.5
    graph = random_training(rng, n, path)
    return VirtualCase(
        graph,
        _devices(rng, graph, devices),
        schedule,
        chunks,
        _microbatches(rng, schedule, devices),
        _constraints(rng) if rng.random() < 0.25 else NONE,
    )


def random_unlike_case(rng: np.random.Generator, schedule: str) -> VirtualCase:
    """The same on kinds of unlike speed, links and memory, some of which may not run all nodes.

    Where they have one stage each, those of the last kind may not pay for transfers.
    """
    case = random_virtual_case(rng, schedule)
    n, first = len(case.graph), case.devices.kinds[0]
    kinds, times = [replace(first, count=int(rng.integers(1, 3)))], dict[str, list[float]]()
    for name in ("slow", "odd")[: int(rng.integers(1, 3))]:
        factor = rng.choice([1.5, 2.0, 3.0]) if name == "slow" else rng.choice([0.5, 1.0, 2.0], n)
        refused = rng.random(n) < (0.15 if rng.random() < 0.4 else 0.0)
        times[name] = np.where(refused, np.nan, case.graph.time[0] * factor).tolist()
        memory = first.memory and float(np.ceil(first.memory * rng.choice([0.7, 1.0, 1.5])))
        more = float(rng.choice([0.5, 1.0, 2.0]))
        kinds.append(DeviceKind(name, int(rng.integers(1, 3)), memory=memory, transfer_factor=more))
    graph = case.graph
    time = np.concatenate([graph.time, np.nan_to_num([*times.values()])])
    allowed = np.concatenate([graph.allowed, ~np.isnan([*times.values()])])
    graph = replace(graph, kinds=("gpu", *times), time=time, allowed=allowed)
    if case.chunks == 1 and rng.random() < 0.5:  # as a host does
        kinds[-1] = replace(kinds[-1], pays_communication=False)
    return replace(case, graph=graph, devices=Devices(tuple(kinds), case.devices.communication))


def _devices_and_chunks(rng: np.random.Generator, schedule: str) -> tuple[int, int]:
    devices = int(rng.integers(1, 4))
    least, _, most = VIRTUAL[schedule].chunks
    chunks = int(rng.integers(least, min(most, 3) + 1))
    return devices, chunks


def random_training(rng: np.random.Generator, n: int, path: bool, memory: bool = True) -> Graph:
    """A graph of `n` forward nodes; its backward nodes mirror them and have their colours."""
    edges = [
        (u, v)
        for u in range(n)
        for v in range(u + 1, n)
        if (path and v == u + 1) or _is_edge(rng, u, v, path)
    ]
    trains = rng.random() < 0.8
    if trains:
        edges += [(2 * n - 1 - v, 2 * n - 1 - u) for u, v in edges]
        edges.append((n - 1, n))
    count = 2 * n if trains else n
    shared, own = rng.choice(COSTS, count), rng.random(count) < 0.2
    cost = [float(rng.choice(COSTS)) if own[u] else float(shared[u]) for u, _ in edges]
    parts: dict[str, Any] = {
        part: rng.choice(SIZES, count) for part in MEMORY_PARTS if memory and rng.random() < 0.7
    }
    return Graph.from_arrays(
        {"gpu": rng.choice(TIMES, count)},
        edges,
        cost,
        size=rng.choice(SIZES, count) if rng.random() < 0.5 else 0.0,
        backward=np.arange(count) >= n,
        color=[min(i, 2 * n - 1 - i) for i in range(count)],
        layer=[min(i, 2 * n - 1 - i) // 2 for i in range(count)],
        **parts,
    )


def _is_edge(rng: np.random.Generator, u: int, v: int, path: bool) -> bool:
    return bool(v > u + 1 or not path) and bool(rng.random() < (0.12 if path else 0.4))


def _devices(rng: np.random.Generator, graph: Graph, count: int) -> Devices:
    total = float(graph.size.sum() + graph.parts.sum())
    memory = float(np.ceil(total * rng.uniform(0.4, 2.0))) if rng.random() < 0.6 else None
    kind = DeviceKind("gpu", count, memory=memory)
    return Devices((kind,), str(rng.choice(COMMUNICATION_MODELS)))


def _microbatches(rng: np.random.Generator, schedule: str, devices: int) -> int:
    found = int(rng.integers(1, 10))
    return (
        found + 2 * devices if schedule == "dualpipev" else found * devices if rng.random() < 0.5 else found
    )


def _constraints(rng: np.random.Generator) -> Constraints:
    demands: dict[str, Any] = {}
    if rng.random() < 0.4:
        demands["nodes_per_stage"] = [(2, None), (None, 4), (2, 6)][int(rng.integers(3))]
    if rng.random() < 0.3:
        demands["layers_per_stage"] = [(1, 2), (None, 2), (1, None)][int(rng.integers(3))]
    demands["neighbours_only"] = bool(rng.random() < 0.5)
    demands["use_all_devices"] = bool(rng.random() < 0.3)
    return Constraints(**demands)


def random_ways_case(rng: np.random.Generator, schedule: str, most_nodes: int = 6) -> VirtualCase:
    """A case whose nodes run in several ways, some of them on two devices, with memory that binds often."""
    devices, chunks = _devices_and_chunks(rng, schedule)
    least = min(most_nodes, max(1, devices * chunks - 1))
    n = int(rng.integers(least, most_nodes + 1))
    graph = random_training(rng, n, bool(rng.random() < 0.5))
    graph = replace(graph, alternatives=Alternatives(_ways(rng, graph, n)))
    total = float(graph.size.sum() + graph.parts.sum())
    memory = float(np.ceil(total * rng.uniform(0.15, 1.2))) if rng.random() < 0.85 else None
    kinds = [DeviceKind("gpu", devices, memory=memory)]
    if rng.random() < 0.25:
        more = float(rng.choice([0.5, 1.0, 2.0]))
        kinds.append(
            DeviceKind("other", 1, memory=memory, times="gpu", time_factor=2.0, transfer_factor=more)
        )
    batch = _microbatches(rng, schedule, devices)
    demands = _constraints(rng) if rng.random() < 0.2 else NONE
    return VirtualCase(graph, Devices(tuple(kinds)), schedule, chunks, batch, demands)


def _ways(rng: np.random.Generator, graph: Graph, count: int) -> dict[int, list[Alternative]]:
    """Up to two ways of each colour class; usually slower ones that hold less."""
    found: dict[int, list[Alternative]] = {}
    linked = rng.random() < 0.3
    for c in range(count):
        for number in range(int(rng.integers(0, 3))):
            degree = 2 if rng.random() < 0.2 else 1
            for node in sorted({c, len(graph) - 1 - c} if len(graph) > count else {c}):
                found.setdefault(node, []).append(_way(rng, graph, node, number, degree, linked))
    return found


def _way(
    rng: np.random.Generator, graph: Graph, node: int, number: int, degree: int, linked: bool
) -> Alternative:
    less, time = rng.choice([0.0, 0.5, 1.0]), graph.time[0, node] * rng.choice([0.5, 1.0, 1.5, 2.0]) / degree
    parts: dict[str, Any] = dict(zip(MEMORY_PARTS, (graph.parts[:, node] * less).tolist(), strict=True))
    sides: list[dict[int, float]] = [{}, {}]
    for u, v in graph.edges.tolist() if linked else ():
        for side, (here, there) in zip(sides, ((v, u), (u, v)), strict=True):
            if here == node and rng.random() < 0.5:
                side[there] = float(rng.choice(COSTS))
    size = float(graph.size[node] * less)
    inputs, outputs = sides
    return Alternative(
        f"way {number}", {"gpu": float(time)}, degree, size, inputs=inputs, outputs=outputs, **parts
    )
