"""What a placement costs and which rules it breaks, computed from the user's graph alone.

Nothing here is shared with the methods, so that a plan's value is never a solver's own claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.checks import node_name
from partitioner.devices import Devices
from partitioner.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.formats.networkx_graph import from_networkx
from partitioner.graph import Graph
from partitioner.shape import Shape, placement_shape

OBJECTIVES = ("throughput", "gpipe")


@dataclass(frozen=True)
class DeviceLoad:
    """The share of one device; pairs are (forward, backward), times in the graph's unit.

    Parameters
    ----------
    name, kind
        The device, e.g. ``accelerator0``, and its kind.
    load
        Time per sample under the model of communication, forward and backward together.
    compute, transfer_in, transfer_out
        Processing, and transfers from and to host memory.
    memory, memory_limit
        Total size placed here, and the limit (None without one).
    nodes
        How many nodes are placed here.
    """

    name: str
    kind: str
    load: float
    compute: tuple[float, float]
    transfer_in: tuple[float, float]
    transfer_out: tuple[float, float]
    memory: float
    memory_limit: float | None
    nodes: int


@dataclass(frozen=True)
class Evaluation:
    """The verdict on a placement.

    Parameters
    ----------
    objective, value
        What was computed, and its value.
    loads
        One entry a device, in the order of `Devices.names`, then devices that do not exist.
    violations
        The broken rules in words; empty for a placement that is feasible.
    shape
        Chain, convex or free, and the order of the devices if it is a chain.
    """

    objective: str
    value: float
    loads: tuple[DeviceLoad, ...]
    violations: tuple[str, ...]
    shape: Shape

    @property
    def feasible(self) -> bool:
        """True if no rule is broken."""
        return not self.violations

    @property
    def bottleneck(self) -> DeviceLoad:
        """The device with the largest load."""
        return max(self.loads, key=lambda entry: entry.load)


def evaluate(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    placement: Mapping[Any, str],
    objective: str = "throughput",
) -> Evaluation:
    """Compute the value of any placement and check it against every rule.

    The load of a device is the time per sample that it is busy (paper, Sections 3, 5.1 and 5.3): the
    processing of its nodes; for every tensor made elsewhere with a consumer here one transfer in;
    for every tensor made here with a consumer elsewhere one transfer out; transfers only if the
    kind pays for them. A transfer in belongs to the backward pass if all its consumers here do.

    Parameters
    ----------
    graph, devices
        The workload; the graph may be networkx's, as in :func:`partitioner.solve`.
        `devices.communication` says how transfers and processing add up.
    placement
        The name of a device for every node id.
    objective
        ``"throughput"``: the largest load over the devices, forward and backward together
        (PipeDream); ``"gpipe"``: the largest forward plus the largest backward load (Appendix D).

    Raises
    ------
    WorkloadError
        If a node is not placed, or an id or device name means nothing.
    OptionError
        If the objective is unknown.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], cost=0.5)
    >>> devices = Devices.accelerated(2)
    >>> evaluate(graph, devices, {0: "accelerator0", 1: "accelerator1"}).value
    2.5
    """
    if objective not in OBJECTIVES:
        raise OptionError(f"objective {shown(objective)} cannot be evaluated; known: {', '.join(OBJECTIVES)}")
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    device, names = _device_of_nodes(graph, devices, placement)
    kind = np.array([_kind(devices, name) for name in names])
    compute = _compute(graph, devices, device, kind)
    into, out = _transfers(graph, device, len(names))
    pays = np.array([devices.kinds[k].pays_communication for k in kind])
    into, out = into * pays, out * pays
    memory: NDArray[np.float64] = np.bincount(device, graph.size, len(names)).astype(np.float64)
    load = _load(devices.communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    by_pass = _load(devices.communication, compute, into, out)
    value = load.max() if objective == "throughput" else by_pass.max(axis=1).sum()
    count = np.bincount(device, minlength=len(names))
    loads = tuple(
        DeviceLoad(
            name=name,
            kind=devices.kinds[kind[i]].name,
            load=float(load[i]),
            compute=_pair(compute[:, i]),
            transfer_in=_pair(into[:, i]),
            transfer_out=_pair(out[:, i]),
            memory=float(memory[i]),
            memory_limit=devices.kinds[kind[i]].memory,
            nodes=int(count[i]),
        )
        for i, name in enumerate(names)
    )
    violations = (
        _missing_devices(devices, names)
        + _full_devices(devices, names, kind, memory)
        + _wrong_kinds(graph, devices, names, device, kind)
        + _torn_colors(graph, names, device)
    )
    shape = placement_shape(graph, device, names)
    return Evaluation(objective, float(value), loads, tuple(violations), shape)


def _device_of_nodes(
    graph: Graph, devices: Devices, placement: Mapping[Any, str]
) -> tuple[NDArray[np.int64], list[str]]:
    """The device number of every node, and the names that the numbers stand for."""
    if not isinstance(placement, Mapping):
        rule = "must be a mapping from node id to device name"
        raise WorkloadError([Flaw("placement", "", shown(placement), rule)])
    flaws = [
        Flaw(f"placement of node {shown(node)}", "", "", "is not the id of a node of the graph")
        for node in placement
        if node not in graph.position
    ]
    flaws += [
        Flaw(node_name(graph, i), "", "", "is not placed on any device")
        for i, node in enumerate(graph.ids)
        if node not in placement
    ]
    kinds = ", ".join(kind.name for kind in devices.kinds)
    wrong = [name for name in placement.values() if not _is_device(devices, name)]
    flaws += [
        Flaw(
            "placement", "device", name, f"must be a kind ({kinds}) and a number, such as {devices.names[0]}"
        )
        for name in dict.fromkeys(map(shown, wrong))
    ]
    if flaws:
        raise WorkloadError(flaws)
    names = list(dict.fromkeys([*devices.names, *placement.values()]))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[placement[node]] for node in graph.ids], dtype=np.int64), names


def _is_device(devices: Devices, name: object) -> bool:
    return isinstance(name, str) and devices.kind_of(name) is not None


def _kind(devices: Devices, name: str) -> int:
    found = devices.kind_of(name)
    assert found is not None  # names were checked when the placement was read
    return found[0]


def _compute(
    graph: Graph, devices: Devices, device: NDArray[np.int64], kind: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Shape (2, devices): processing time, forward and backward."""
    row = np.array([_row(graph, k.name) for k in devices.kinds])[kind[device]]
    time = np.where(row < 0, 0.0, graph.time[row, np.arange(len(graph))])
    total = np.zeros((2, len(kind)))
    np.add.at(total, (graph.backward.astype(int), device), time)
    return total


def _row(graph: Graph, kind: str) -> int:
    return graph.kinds.index(kind) if kind in graph.kinds else -1


def _transfers(
    graph: Graph, device: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shape (2, devices) each: transfer time in and out of every device, forward and backward."""
    into, out = np.zeros((2, count)), np.zeros((2, count))
    tensor, cost = _tensors(graph)
    maker, user = graph.edges[:, 0], graph.edges[:, 1]
    cut = device[maker] != device[user]
    tensor, maker, user = tensor[cut], maker[cut], user[cut]
    _, first = np.unique(tensor, return_index=True)
    np.add.at(out, (graph.backward[maker[first]].astype(int), device[maker[first]]), cost[tensor[first]])
    arrival, which = np.unique(tensor * count + device[user], return_inverse=True)
    only_backward = np.ones(len(arrival), dtype=bool)
    np.logical_and.at(only_backward, which, graph.backward[user])
    np.add.at(into, (only_backward.astype(int), arrival % count), cost[arrival // count])
    return into, out


def _tensors(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The tensor that each edge carries, and each tensor's cost (paper, Appendix E.1).

    Edges of equal cost out of one node carry the same tensor; once two costs out of a node differ,
    each of its edges carries its own.
    """
    source = graph.edges[:, 0]
    low = np.full(len(graph), np.inf)
    high = np.zeros(len(graph))
    np.minimum.at(low, source, graph.cost)
    np.maximum.at(high, source, graph.cost)
    tensor = np.where((low < high)[source], len(graph) + np.arange(len(source)), source)
    cost = np.zeros(len(graph) + len(source))
    cost[tensor] = graph.cost
    return tensor.astype(np.int64), cost


def _load(
    communication: str,
    compute: NDArray[np.float64],
    into: NDArray[np.float64],
    out: NDArray[np.float64],
) -> NDArray[np.float64]:
    if communication == "sequential":
        return compute + into + out
    if communication == "overlapped":
        return np.maximum(compute, into + out)
    return np.maximum(compute, np.maximum(into, out))


def _pair(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def _missing_devices(devices: Devices, names: list[str]) -> list[str]:
    present = set(devices.names)
    counts = ", ".join(f"{kind.count} of kind {kind.name}" for kind in devices.kinds)
    return [f"{name} does not exist: there are {counts}" for name in names if name not in present]


def _full_devices(
    devices: Devices, names: list[str], kind: NDArray[np.int64], memory: NDArray[np.float64]
) -> list[str]:
    limit = np.array([devices.kinds[k].memory_limit for k in kind])
    return [
        f"{names[i]} holds {memory[i]:,.6g}, its memory is {devices.kinds[kind[i]].memory:,.6g}"
        for i in np.flatnonzero(memory > limit)
    ]


def _wrong_kinds(
    graph: Graph,
    devices: Devices,
    names: list[str],
    device: NDArray[np.int64],
    kind: NDArray[np.int64],
) -> list[str]:
    row = np.array([_row(graph, k.name) for k in devices.kinds])[kind[device]]
    may = (row >= 0) & graph.allowed[row, np.arange(len(graph))]
    return [f"{node_name(graph, int(i))} may not run on {names[device[i]]}" for i in np.flatnonzero(~may)]


def _torn_colors(graph: Graph, names: list[str], device: NDArray[np.int64]) -> list[str]:
    found = []
    home: dict[int, int] = {}
    for i, color in enumerate(graph.color.tolist()):
        first = home.setdefault(color, i) if color >= 0 else i
        if device[first] != device[i]:
            found.append(
                f"colour class {shown(graph.color_labels[color])} is torn: {node_name(graph, first)} "
                f"on {names[device[first]]}, {node_name(graph, i)} on {names[device[i]]}"
            )
    return found
