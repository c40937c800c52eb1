"""What a device does in a placement: its load, memory and nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from partitioner.base.markup import html_table


@dataclass(frozen=True)
class DeviceLoad:
    """The load and memory of one device; pairs are (forward, backward), times in the graph's unit.

    Parameters
    ----------
    name, kind
        The device, e.g. ``accelerator0``, and its kind.
    load
        Time per sample that the device is busy under the model of communication, both passes together.
    compute, transfer_in, transfer_out
        Processing, and transfers from and to host memory.
    memory, memory_limit
        The memory that the device holds, under the schedule if there is one, and its limit (None without
        one).
    nodes
        How many nodes are placed on the device.
    sync
        The time of the exchange of weights among the replicas of the stage.
    replica_of
        The first device of the stage, if this device holds a copy of it; else None. The times of a stage
        are divided among its replicas; each of them holds the whole memory.
    cache
        For objective ``"capacity"`` the memory that every sample in flight takes; `memory` includes that of
        as many samples as the value.
    capacity
        For objective ``"capacity"`` how many samples fit this device; None if nothing limits them.
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
    sync: float = 0.0
    replica_of: str | None = None
    cache: float = 0.0
    capacity: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; trivial ones on replicas and samples are left out."""
        record = asdict(self)
        trivial = {"replica_of": None, "sync": 0, "cache": 0, "capacity": None}
        for name in (name for name, value in trivial.items() if record[name] == value):
            del record[name]
        return record


def loads_html(title: str, loads: Sequence[DeviceLoad]) -> str:
    """Return the devices in use as a table for notebooks."""
    used = [load for load in loads if load.nodes > 0]
    rows = [(load.name, load.nodes, f"{load.load:.6g}", f"{load.memory:.6g}") for load in used]
    return html_table(title, ("device", "nodes", "load", "memory"), rows)
