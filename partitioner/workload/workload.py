"""A workload: a graph together with the devices to split it over."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from partitioner.base.argument_types import require_type
from partitioner.base.errors import DoesNotFitError, WorkloadError, shown
from partitioner.base.files import write_text
from partitioner.base.markup import html_table
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.graph_validation import device_flaws, size_flaws
from partitioner.workload.workload_json import workload_text


@dataclass(frozen=True)
class Workload:
    """A graph and the devices to split it over, checked to fit together.

    Parameters
    ----------
    graph, devices
        The computation graph, and the devices that are to run it.
    name
        A title; for a workload from a file the file's name.

    Raises
    ------
    WorkloadError
        If a node may run on no device. If nodes that must be together fit in no device's memory, it is an
        :class:`partitioner.InfeasibleError` as well.
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
        too_large = size_flaws(self.graph, self.devices)
        if too_large:
            raise DoesNotFitError(too_large)

    @property
    def sha256(self) -> str:
        """The SHA-256 of all data of the graph and the devices that a solver reads."""
        return workload_hash(self.graph, self.devices)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, which :func:`partitioner.load` reads back; all of it is written or nothing.

        ``docs/workload_format.md`` describes the file. A workload that is read has the name of its file.

        Raises
        ------
        PartitionerError
            If the file cannot be written, or a label or a further field has no place in JSON.
        """
        write_text(path, workload_text(self.graph, self.devices))

    def __repr__(self) -> str:
        return f"<Workload {shown(self.name)}: {self.graph!r}, {self.devices!r}>"

    def _repr_html_(self) -> str:
        sizes = ("any" if kind.memory is None else f"{kind.memory:.6g}" for kind in self.devices.kinds)
        rows = [(kind.name, kind.count, size) for kind, size in zip(self.devices.kinds, sizes, strict=True)]
        return html_table(repr(self)[1:-1], ("kind", "devices", "memory"), rows)


def workload_hash(graph: Graph, devices: Devices) -> str:
    """Return the SHA-256 of all data of a graph and devices that a solver reads, even if they do not fit."""
    return hashlib.sha256(f"{graph.digest}|{devices.text}".encode()).hexdigest()
