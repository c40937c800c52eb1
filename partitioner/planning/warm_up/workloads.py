"""Tiny workloads whose solves compile kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from partitioner.workload.alternatives import Alternative, Alternatives
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.groups import DeviceGroup, GroupLink
from partitioner.workload.levels import Level

HALF = 5  # nodes of each pass
MEMORY = 20.0


def training() -> Graph:
    """Return a path with a branch, and its backward pass."""
    n = 2 * HALF
    edges = [*((v, v + 1) for v in range(n - 1)), (0, 2), (n - 3, n - 1)]
    return Graph.from_arrays(
        {"accelerator": [1.0 + v * 7 % 5 for v in range(n)], "cpu": [9.0 + v % 3 for v in range(n)]},
        edges,
        [0.5 + i % 4 / 4 for i in range(len(edges))],
        size=1.0,
        activations=0.5,
        backward=[v >= HALF for v in range(n)],
        color=[min(v, n - 1 - v) for v in range(n)],
    )


def inference() -> Graph:
    """Return a graph of one pass with branchings."""
    n = 2 * HALF
    edges = [(v, v + step) for v in range(n) for step in (2, 3) if v + step < n]
    time = [1.0 + v * 7 % 5 for v in range(n)]
    return Graph.from_arrays({"accelerator": time, "cpu": time}, edges, 0.25, size=1.0)


def unrelated() -> Graph:
    """Return nodes without edges, of times that no two devices share evenly, so that searches go on."""
    time = [3.0, 3.1, 3.3, 3.7, 4.2]
    return Graph.from_arrays({"accelerator": time, "cpu": time}, [], [], size=1.0)


def devices() -> Devices:
    """Return two accelerators and a CPU."""
    kinds = (
        DeviceKind("accelerator", 2, memory=MEMORY, bandwidth=50.0),
        DeviceKind("cpu", 1, pays_communication=False),
    )
    return Devices(kinds)


def servers() -> Devices:
    """Return two servers of two accelerators each."""
    kind = DeviceKind("accelerator", 4, memory=MEMORY, bandwidth=50.0)
    return Devices((kind,), levels=(Level("server", {"accelerator": 2}, slowdown=5.0),))


def linked_servers() -> Devices:
    """Return two servers of one and of two accelerators, with a link between them."""
    kind = DeviceKind("accelerator", 3, memory=MEMORY, bandwidth=50.0)
    groups = DeviceGroup("one", {"accelerator": 1}), DeviceGroup("two", {"accelerator": 2})
    return Devices((kind,), groups=groups, links=(GroupLink(5.0),))


def different_devices(count: int) -> tuple[Graph, Devices]:
    """Return a graph and devices of which each has its own times."""
    names = [f"accelerator-{i}" for i in range(count)]
    n = 2 * HALF
    time: Mapping[str, list[float]] = {
        name: [1.0 + (v * (i + 2)) % 7 for v in range(n)] for i, name in enumerate(names)
    }
    graph = Graph.from_arrays(time, [(v, v + 2) for v in range(n - 2)])
    return graph, Devices(tuple(DeviceKind(name, 1) for name in names))


def with_alternatives() -> tuple[Graph, Devices]:
    """Return a path of equal devices whose nodes may take less memory and more time."""
    n, edges = HALF, [(v, v + 1) for v in range(HALF - 1)]
    graph = Graph.from_arrays({"accelerator": [2.0 + v % 3 for v in range(n)]}, edges, 0.25, size=2.0)
    ways = {v: [Alternative("small", {"accelerator": 3.1 + v % 2}, size=1.0 + v / 7)] for v in range(n)}
    devices = Devices((DeviceKind("accelerator", 2, memory=4.0),))
    return replace(graph, alternatives=Alternatives(ways)), devices


def halves(graph: Graph) -> dict[int | str, str]:
    """Return a placement of the two halves of each pass on two accelerators."""
    n = len(graph)
    return {graph.ids[v]: f"accelerator{int(n // 4 <= v < n - n // 4)}" for v in range(n)}
