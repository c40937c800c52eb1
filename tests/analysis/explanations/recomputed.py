"""What a placement costs, recomputed from the arrays of a graph by loops over nodes and edges.

It shares no code with the package's evaluator, methods or explanations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from partitioner import DeviceKind, Devices, Graph

Placement = Mapping[Any, str]


class Tensor(NamedTuple):
    """A tensor that a device receives or sends."""

    node: Any
    direction: str
    devices: frozenset[str]
    time: float


class DeviceCost(NamedTuple):
    """What a device is busy with, and what it holds."""

    compute: float
    receiving: float
    sending: float
    load: float
    memory: float
    nodes: dict[Any, float]
    tensors: list[Tensor]


def kind_of(devices: Devices, name: str) -> DeviceKind:
    """The kind of a device, by its names one by one."""
    return next(kind for kind in devices.kinds for i in range(kind.count) if kind.device(i) == name)


def costs(graph: Graph, devices: Devices, placement: Placement) -> dict[str, DeviceCost]:
    """The costs of every device that nodes are on."""
    return {name: cost_of(graph, devices, placement, name) for name in dict.fromkeys(placement.values())}


def cost_of(graph: Graph, devices: Devices, placement: Placement, name: str) -> DeviceCost:
    """The costs of one device."""
    kind = kind_of(devices, name)
    row = graph.kinds.index(kind.row)
    nodes, held = {}, 0.0
    for i, node in enumerate(graph.ids):
        if placement[node] == name:
            nodes[node] = float(graph.time[row, i]) * kind.time_factor
            held += float(graph.size[i]) + sum(float(part) for part in graph.parts[:, i])
    paid = kind.transfer_factor if kind.pays_communication else 0.0
    moved = [tensor._replace(time=tensor.time * paid) for tensor in tensors(graph, placement, name)]
    compute = sum(nodes.values())
    into, out = (sum(each.time for each in moved if each.direction == way) for way in ("from", "to"))
    load = {
        "sequential": compute + into + out,
        "overlapped": max(compute, into + out),
        "duplex": max(compute, into, out),
    }[devices.communication]
    return DeviceCost(compute, into, out, load, held, nodes, moved)


def tensors(graph: Graph, placement: Placement, name: str) -> list[Tensor]:
    """The tensors of a device: of one producer one for each cost, or one for each edge if costs differ."""
    leaving: dict[Any, list[tuple[Any, float]]] = defaultdict(list)
    for (source, target), cost in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True):
        leaving[graph.ids[source]].append((graph.ids[target], cost))
    found = []
    for maker, ends in leaving.items():
        whole = len({cost for _, cost in ends}) == 1
        for group in [ends] if whole else [[end] for end in ends]:
            homes = {placement[user] for user, _ in group}
            if placement[maker] == name and homes - {name}:
                found.append(Tensor(maker, "to", frozenset(homes - {name}), group[0][1]))
            elif placement[maker] != name and name in homes:
                found.append(Tensor(maker, "from", frozenset([placement[maker]]), group[0][1]))
    return found
