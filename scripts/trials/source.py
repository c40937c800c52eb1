"""Workloads as Python source, so that a case can be pasted; and the smallest graph that still fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

import partitioner as pt
from partitioner.workload.alternatives import Alternatives
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.graph import Extras

IMPORTS = "import partitioner as pt\nfrom partitioner import DeviceKind, Devices, Graph, Level"
NodeTest = Callable[[pt.Graph], bool]


def workload_source(graph: pt.Graph, devices: pt.Devices) -> str:
    """Statements that make `graph` and `devices`."""
    return f"{IMPORTS}\ngraph = {graph_source(graph)}\ndevices = {devices_source(devices)}"


def devices_source(devices: pt.Devices) -> str:
    """A call of `Devices` that makes the devices again."""
    given = ", ".join(f"{each.name}={getattr(devices, each.name)!r}" for each in fields(devices))
    return f"Devices({given})"


def graph_source(graph: pt.Graph) -> str:
    """A call of `Graph.from_arrays` that makes the graph again, as far as solvers see it."""
    ids = [(graph.ids[u], graph.ids[v]) for u, v in graph.edges.tolist()]
    given: dict[str, Any] = {
        "time": {kind: row.tolist() for kind, row in zip(graph.kinds, graph.time, strict=True)},
        "edges": ids,
        "cost": graph.cost.tolist(),
        "ids": list(graph.ids) if graph.ids != tuple(range(len(graph))) else None,
        "size": graph.size.tolist() if graph.size.any() else None,
        "cache": graph.cache.tolist() if graph.cache.any() else None,
        "backward": graph.backward.tolist() if graph.backward.any() else None,
        "color": _classes(graph.color),
        "layer": _classes(graph.layer),
    }
    if not graph.allowed.all():
        rows = zip(graph.kinds, graph.allowed, strict=True)
        given["allowed"] = {kind: row.tolist() for kind, row in rows}
    parts = zip(MEMORY_PARTS, graph.parts, strict=True)
    given |= {name: row.tolist() for name, row in parts if row.any()}
    said = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    return f"Graph.from_arrays({', '.join(said)})"


def without(graph: pt.Graph, node: int) -> pt.Graph:
    """The graph without one node and its edges."""
    keep = np.arange(len(graph)) != node
    stays = (graph.edges != node).all(axis=1)
    edges = graph.edges[stays]
    return replace(
        graph,
        ids=tuple(np.array(graph.ids, dtype=object)[keep].tolist()),
        names=tuple(name for i, name in enumerate(graph.names) if i != node),
        extras=Extras(),
        time=graph.time[:, keep],
        allowed=graph.allowed[:, keep],
        size=graph.size[keep],
        backward=graph.backward[keep],
        color=graph.color[keep],
        layer=graph.layer[keep],
        parts=graph.parts[:, keep],
        cache=graph.cache[keep],
        alternatives=Alternatives(
            {i: ways for i, ways in graph.alternatives.items() if i != graph.ids[node]}
        ),
        edges=edges - (edges > node),
        cost=graph.cost[stays],
    )


def smallest(graph: pt.Graph, fails: NodeTest) -> pt.Graph:
    """Leave out nodes, then edges, as long as the test still fails."""
    for shrink, count in ((without, len), (_without_edge, lambda g: len(g.edges))):
        place = 0
        while place < count(graph):
            smaller = _less(graph, place, shrink, fails)
            graph, place = (graph, place + 1) if smaller is None else (smaller, place)
    return graph


def _less(
    graph: pt.Graph, place: int, shrink: Callable[[pt.Graph, int], pt.Graph], fails: NodeTest
) -> pt.Graph | None:
    """The graph without that node or edge; None if it is no graph then, or does not fail."""
    try:
        smaller = shrink(graph, place)
        return smaller if fails(smaller) else None
    except pt.PartitionerError:
        return None


def _without_edge(graph: pt.Graph, edge: int) -> pt.Graph:
    keep = np.arange(len(graph.edges)) != edge
    return replace(graph, edges=graph.edges[keep], cost=graph.cost[keep])


def _classes(labels: np.ndarray[Any, Any]) -> list[int | None] | None:
    found = [None if label < 0 else label for label in labels.tolist()]
    return found if any(label is not None for label in found) else None
