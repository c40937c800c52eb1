"""A placement as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.checks import node_name
from partitioner.devices import Devices
from partitioner.errors import Flaw, WorkloadError, shown
from partitioner.graph import Bools, Graph, Ints


@dataclass(frozen=True, eq=False)
class Placed:
    """Where every node of a graph is.

    Parameters
    ----------
    graph, devices
        The workload.
    names
        Every device that exists, then those that a placement names beyond.
    device
        Shape (n,): position in `names` of every node's device.
    kind
        Shape (devices,): position of each device's kind.
    row
        Shape (n,): row of the graph's times for the kind that each node is on, -1 if it has none.
    """

    graph: Graph
    devices: Devices
    names: tuple[str, ...]
    device: Ints
    kind: Ints
    row: Ints

    @property
    def pays(self) -> Bools:
        """Shape (devices,): does the device pay for communication?"""
        return np.array([self.devices.kinds[k].pays_communication for k in self.kind], dtype=bool)


def read_placement(graph: Graph, devices: Devices, placement: Mapping[Any, str]) -> Placed:
    """Translate a placement to arrays.

    Raises
    ------
    WorkloadError
        If a node is not placed, or an id or device name means nothing.
    """
    _check(graph, devices, placement)
    names = tuple(dict.fromkeys([*devices.names, *placement.values()]))
    number = {name: i for i, name in enumerate(names)}
    device = np.array([number[placement[node]] for node in graph.ids], dtype=np.int64)
    found = [devices.kind_of(name) for name in names]
    kind = np.array([known[0] for known in found if known is not None], dtype=np.int64)
    rows = [graph.kinds.index(k.name) if k.name in graph.kinds else -1 for k in devices.kinds]
    return Placed(graph, devices, names, device, kind, np.array(rows)[kind[device]])


def _check(graph: Graph, devices: Devices, placement: Mapping[Any, str]) -> None:
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


def _is_device(devices: Devices, name: object) -> bool:
    return isinstance(name, str) and devices.kind_of(name) is not None
