"""A graph together with the devices to split it over."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from partitioner.base.argument_types import require_type
from partitioner.base.errors import WorkloadError, shown
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.graph_validation import device_flaws


@dataclass(frozen=True)
class Workload:
    """What a workload file holds. Made only of a graph that the devices can run.

    Parameters
    ----------
    graph, devices
        The problem's two halves.
    name
        A title, by default the file's name.

    Raises
    ------
    WorkloadError
        If a node or a colour class has no device that may run it and has the memory.
    """

    graph: Graph
    devices: Devices
    name: str = "workload"

    def __post_init__(self) -> None:
        require_type("graph", self.graph, Graph)
        require_type("devices", self.devices, Devices)
        flaws = device_flaws(self.graph, self.devices)
        if flaws:
            raise WorkloadError(flaws)

    @property
    def sha256(self) -> str:
        """SHA-256 of all that a solver sees of the graph and the devices."""
        return workload_hash(self.graph, self.devices)

    def __repr__(self) -> str:
        return f"<Workload {shown(self.name)}: {self.graph!r}, {self.devices!r}>"


def workload_hash(graph: Graph, devices: Devices) -> str:
    """Return the SHA-256 of all that a solver sees of a graph and devices, whether they fit or not."""
    return hashlib.sha256(f"{graph.digest}|{devices.text}".encode()).hexdigest()
