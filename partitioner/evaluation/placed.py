"""A placement as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.chosen import NONE, choose
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Floats, Graph, Ints
from partitioner.workload.graph_validation import node_name
from partitioner.workload.transfers import with_latency


@dataclass(frozen=True, eq=False)
class Placed:
    """The device of every node of a graph, as arrays.

    Parameters
    ----------
    graph, devices
        The workload.
    names
        Every device that exists, then further devices that the placement names.
    device
        Shape (n,): position in `names` of every node's device.
    kind
        Shape (devices,): position of each device's kind.
    row
        Shape (n,): row of the graph's times for the kind of each node's device; -1 if there is none.
    degree
        Shape (n,): how many devices run each node together.
    surcharge
        Shape (2, m): the time in addition to its cost that the consumer and the producer of an edge pay.
    """

    graph: Graph
    devices: Devices
    names: tuple[str, ...]
    device: Ints
    kind: Ints
    row: Ints
    degree: Ints
    surcharge: Floats

    @property
    def pays(self) -> Bools:
        """Shape (devices,): whether the device pays for communication."""
        return np.array([self.devices.kinds[k].pays_communication for k in self.kind], dtype=bool)

    @property
    def transfer_factor(self) -> Floats:
        """Shape (devices,): the time that a transfer of cost 1 takes the device."""
        return np.array(self.devices.transfer_factors)[self.kind]

    @property
    def time_factor(self) -> Floats:
        """Shape (devices,): the factor for the graph's times on the device."""
        return np.array([kind.time_factor for kind in self.devices.kinds])[self.kind]

    @property
    def memory(self) -> Floats:
        """Shape (devices,): the memory of the device's nodes, each part counted once."""
        size = self.graph.size + self.graph.parts.sum(axis=0)
        return np.bincount(self.device, size, len(self.names)).astype(np.float64)


def read_placement(
    graph: Graph,
    devices: Devices,
    placement: Mapping[Any, str],
    further: Sequence[str] = (),
    alternatives: Mapping[Any, str] = NONE,
) -> Placed:
    """Return a placement as arrays; `further` names devices in addition to those of the placement.

    `graph` of the result has the figures of the chosen alternatives, and costs with the devices' latency.

    Raises
    ------
    WorkloadError
        If a node is not placed, an id is not that of a node, or a name is not that of a device.
    """
    _check(graph, devices, placement)
    chosen = choose(with_latency(graph, devices), alternatives)
    names = tuple(dict.fromkeys([*devices.names, *placement.values(), *further]))
    number = {name: i for i, name in enumerate(names)}
    device = np.array([number[placement[node]] for node in graph.ids], dtype=np.int64)
    found = [devices.kind_of(name) for name in names]
    kind = np.array([known[0] for known in found if known is not None], dtype=np.int64)
    rows = [graph.kinds.index(k.row) if k.row in graph.kinds else -1 for k in devices.kinds]
    row = np.array(rows)[kind[device]]
    return Placed(chosen.graph, devices, names, device, kind, row, chosen.degree, chosen.surcharge)


def _check(graph: Graph, devices: Devices, placement: Mapping[Any, str]) -> None:
    if not isinstance(placement, Mapping):
        rule = "must be a mapping from node id to device name"
        raise WorkloadError([Flaw("placement", "", shown(placement), rule)])
    flaws = [] if placement.keys() == graph.position.keys() else node_flaws(graph, placement)
    kinds = ", ".join(kind.name for kind in devices.kinds)
    names = dict.fromkeys(name for name in placement.values() if isinstance(name, str))
    wrong: list[Any] = [name for name in placement.values() if not isinstance(name, str)]
    wrong += [name for name in names if not is_device(devices, name)]
    flaws += [
        Flaw(
            "placement", "device", name, f"must be a kind ({kinds}) and a number, such as {devices.names[0]}"
        )
        for name in dict.fromkeys(map(shown, wrong))
    ]
    if flaws:
        raise WorkloadError(flaws)


def node_flaws(graph: Graph, placement: Mapping[Any, str]) -> list[Flaw]:
    """Return a flaw for each id that is unknown, and for each node without a device."""
    unknown = [
        Flaw(f"placement of node {shown(node)}", "", "", "is not the id of a node of the graph")
        for node in placement
        if node not in graph.position
    ]
    return unknown + [
        Flaw(node_name(graph, i), "", "", "is not placed on any device")
        for i, node in enumerate(graph.ids)
        if node not in placement
    ]


def is_device(devices: Devices, name: object) -> bool:
    """Whether a value is the name of a device of some kind; the device need not exist."""
    return isinstance(name, str) and devices.kind_of(name) is not None
