"""How full the devices of a plan are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.result import Evaluation
from partitioner.workload.devices import Devices

NEARLY = 0.95  # part of its memory from which on a device counts as nearly full


@dataclass(frozen=True)
class MemoryUse:
    """The memory that a device holds, and its limit, in the unit of the graph's sizes (bytes)."""

    device: str
    held: float
    limit: float

    @property
    def free(self) -> float:
        """The memory that is left; below 0 if the device holds too much."""
        return self.limit - self.held

    @property
    def share(self) -> float:
        """The part of the limit that is held."""
        return self.held / self.limit if self.limit else float(self.held > 0)


def memory_of(evaluation: Evaluation) -> tuple[MemoryUse, ...]:
    """Return the use of every device that has a limit and holds something, the fullest first."""
    found = [
        MemoryUse(load.name, load.memory, load.memory_limit)
        for load in evaluation.loads
        if load.memory_limit is not None and load.memory
    ]
    return tuple(sorted(found, key=lambda use: -use.share))


def largest_excess(loads: Sequence[DeviceLoad], devices: Devices) -> MemoryUse | None:
    """Return the device that exceeds its memory by most if these loads are on these devices.

    None if no device does.
    """
    kinds = {kind.name: kind for kind in devices.kinds}
    over = [
        MemoryUse(load.name, load.memory, kinds[load.kind].memory or 0.0)
        for load in loads
        if load.memory > kinds[load.kind].memory_limit
    ]
    return min(over, key=lambda use: use.free, default=None)
