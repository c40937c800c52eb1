"""Random changes of small instances: times, sizes, costs, edges, nodes, devices, links, samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import partitioner as pt
from trials.source import without

FACTORS = (0.0, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0)
LONGEST = 64.0
Rng = np.random.Generator


@dataclass(frozen=True)
class Instance:
    """A workload and what is asked of it; `options` are those of `solve` as a file holds them."""

    graph: pt.Graph
    devices: pt.Devices
    objective: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Room:
    """How large an instance may become."""

    nodes: int
    devices: int
    fixed: tuple[str, ...] = ()


def changed(instance: Instance, rng: Rng, room: Room) -> Instance | None:
    """Return the instance with one to three changes; None if it is no workload then, or is too large."""
    changes = [change for change in CHANGES if change.__name__ not in room.fixed]
    try:
        for _ in range(int(rng.integers(1, 4))):
            instance = changes[int(rng.integers(len(changes)))](instance, rng)
        pt.Workload(instance.graph, instance.devices)
    except pt.PartitionerError:
        return None
    small = len(instance.graph) <= room.nodes and len(instance.devices.names) <= room.devices
    return instance if small and len(instance.graph) else None


def _scaled(value: float, rng: Rng) -> float:
    """Return a value by a factor, or another small one; three digits, so that files are short."""
    drawn = float(rng.integers(0, 9)) if rng.random() < 0.3 or value == 0 else value * rng.choice(FACTORS)
    return float(f"{min(drawn, LONGEST):.3g}")


def time(instance: Instance, rng: Rng) -> Instance:
    """Change what a node takes, on one kind or on all."""
    graph, rows = instance.graph, instance.graph.time.copy()
    v, kind = int(rng.integers(len(graph))), int(rng.integers(len(rows)))
    if rng.random() < 0.3:
        rows[:, v] = rows[:, int(rng.integers(len(graph)))]
    elif rng.random() < 0.5:
        rows[kind, v] = _scaled(rows[kind, v], rng)
    else:
        rows[:, v] = _scaled(float(rows[0, v]), rng)
    return replace(instance, graph=replace(graph, time=rows))


def size(instance: Instance, rng: Rng) -> Instance:
    """Change the memory of a node."""
    graph, sizes = instance.graph, instance.graph.size.copy()
    v = int(rng.integers(len(graph)))
    sizes[v] = _scaled(float(sizes[v]), rng)
    return replace(instance, graph=replace(graph, size=sizes))


def cost(instance: Instance, rng: Rng) -> Instance:
    """Change what a node's output costs to move, to all its users."""
    graph, costs = instance.graph, instance.graph.cost.copy()
    if not len(costs):
        return instance
    maker = graph.edges[int(rng.integers(len(costs))), 0]
    own = graph.edges[:, 0] == maker
    costs[own] = _scaled(float(costs[own][0]), rng)
    return replace(instance, graph=replace(graph, cost=costs))


def edge(instance: Instance, rng: Rng) -> Instance:
    """Add an edge, or take one out."""
    graph = instance.graph
    if len(graph.edges) and rng.random() < 0.5:
        keep = np.arange(len(graph.edges)) != int(rng.integers(len(graph.edges)))
        return replace(instance, graph=replace(graph, edges=graph.edges[keep], cost=graph.cost[keep]))
    u, v = sorted(int(i) for i in rng.integers(len(graph), size=2))
    known = {tuple(pair) for pair in graph.edges.tolist()}
    if u == v or (u, v) in known or graph.backward[u] > graph.backward[v]:
        return instance
    out = graph.cost[graph.edges[:, 0] == u]
    price = float(out[0]) if len(out) else float(rng.integers(0, 4))
    edges, costs = np.vstack((graph.edges, [[u, v]])), np.append(graph.cost, price)
    return replace(instance, graph=replace(graph, edges=edges, cost=costs))


def fewer_nodes(instance: Instance, rng: Rng) -> Instance:
    """Take a node out."""
    graph = instance.graph
    return (
        instance if len(graph) < 3 else replace(instance, graph=without(graph, int(rng.integers(len(graph)))))
    )


def more_nodes(instance: Instance, rng: Rng) -> Instance:
    """Split a node in two, of which the second one has a part of its time and all its users."""
    old = instance.graph
    if old.backward.any():
        return instance
    v, n, share = int(rng.integers(len(old))), len(old), float(rng.choice([0.25, 0.5]))
    times = np.column_stack((old.time, old.time[:, v] * share))
    times[:, v] *= 1 - share
    edges = old.edges.copy()
    edges[edges[:, 0] == v, 0] = n
    graph = pt.Graph.from_arrays(
        {kind: row.tolist() for kind, row in zip(old.kinds, times, strict=True)},
        [*map(tuple, edges.tolist()), (v, n)],
        [*old.cost.tolist(), float(rng.integers(0, 4))],
        size=[*old.size.tolist(), 0.0],
        allowed={
            kind: [*row.tolist(), bool(row[v])] for kind, row in zip(old.kinds, old.allowed, strict=True)
        },
        color=[None if c < 0 else c for c in (*old.color.tolist(), -1)],
    )
    return replace(instance, graph=_numbered(graph))


def _numbered(graph: pt.Graph) -> pt.Graph:
    """Return the graph with its nodes in a topological order, so that new edges lead forward."""
    left, order = set(range(len(graph))), []
    makers: dict[int, set[int]] = {v: set() for v in left}
    for u, v in graph.edges.tolist():
        makers[v].add(u)
    while left:
        v = min(v for v in left if not makers[v] & left)
        order.append(v)
        left.discard(v)
    place = np.argsort(order)
    return replace(
        graph,
        time=graph.time[:, order],
        allowed=graph.allowed[:, order],
        size=graph.size[order],
        color=graph.color[order],
        edges=place[graph.edges].reshape(-1, 2),
    )


def device_count(instance: Instance, rng: Rng) -> Instance:
    """Add a device of a kind, or take one away."""
    kinds = list(instance.devices.kinds)
    k = int(rng.integers(len(kinds)))
    count = kinds[k].count + int(rng.choice([-1, 1]))
    kinds[k] = replace(kinds[k], count=max(count, 0 if len(kinds) > 1 else 1))
    return replace(instance, devices=replace(instance.devices, kinds=tuple(kinds)))


def kind(instance: Instance, rng: Rng) -> Instance:
    """Change the memory, the bandwidth or a factor of a kind."""
    kinds = list(instance.devices.kinds)
    k = int(rng.integers(len(kinds)))
    field = str(rng.choice(["memory", "bandwidth", "time_factor", "transfer_factor"]))
    value = getattr(kinds[k], field)
    if value is None:
        return instance
    low = 0.0 if field == "memory" else 0.05
    given: dict[str, Any] = {field: max(low, _scaled(float(value), rng))}
    kinds[k] = replace(kinds[k], **given)
    return replace(instance, devices=replace(instance.devices, kinds=tuple(kinds)))


def links(instance: Instance, rng: Rng) -> Instance:
    """Change a slowdown, or move a device to another group."""
    devices = instance.devices

    def slow() -> float:
        return float(rng.choice([1.0, 1.5, 2.0, 3.0, 5.0, 8.0]))

    if devices.levels:
        levels = tuple(replace(level, slowdown=slow()) for level in devices.levels)
        return replace(instance, devices=replace(devices, levels=levels))
    if not devices.groups:
        return instance
    if rng.random() < 0.5:
        groups = list(devices.groups)
        g = int(rng.integers(len(groups)))
        groups[g] = replace(groups[g], slowdown=slow())
        return replace(instance, devices=replace(devices, groups=tuple(groups)))
    wires = list(devices.links)
    if wires:
        i = int(rng.integers(len(wires)))
        wires[i] = replace(wires[i], slowdown=slow())
    return replace(instance, devices=replace(devices, links=tuple(wires)))


def samples(instance: Instance, rng: Rng) -> Instance:
    """Change the number of microbatches, or the most replicas."""
    options = dict(instance.options)
    for name, most in (("microbatches", 12), ("replicas", 6)):
        if name in options:
            options[name] = int(np.clip(options[name] + rng.integers(-1, 2), 1, most))
    return replace(instance, options=options)


Change = Callable[[Instance, Rng], Instance]
CHANGES: tuple[Change, ...] = (
    *(time, time, cost, cost, edge, edge),
    *(size, kind, links, device_count, samples, fewer_nodes, more_nodes),
)
