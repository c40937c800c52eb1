"""The settings of a pipeline: replicas, schedule, size of a batch, and the user's constraints."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.virtual_stages.schedules import VIRTUAL


@dataclass(frozen=True)
class Regime:
    """The settings of a pipeline, in addition to objective and split.

    Parameters
    ----------
    replicas
        The largest number of devices that may share a stage.
    schedule
        The schedule that determines how many samples a stage holds; None if memory does not depend on one.
    microbatches
        Samples in a batch, for objective ``"batch"`` and for schedules that hold a whole batch; None if it
        is not known.
    constraints
        The user's constraints.
    virtual_stages
        How many stages each device has; None for the usual number of the schedule.
    """

    replicas: int = 1
    schedule: str | None = None
    microbatches: int | None = None
    constraints: Constraints = NONE
    virtual_stages: int | None = None

    @property
    def has_virtual_stages(self) -> bool:
        """Whether the schedule may have several stages on a device."""
        return self.schedule in VIRTUAL

    def features(self, devices: Devices) -> tuple[str, ...]:
        """Return the features that a method needs beyond stages of one device each on equal links."""
        pinned = set(self.constraints.pin.values()) - {kind.name for kind in devices.kinds}
        exchanging = (kind.bandwidth is not None for kind in devices.kinds)
        wanted = {
            "replicas": self.replicas > 1,
            "levels": bool(devices.levels),
            "groups": bool(devices.groups),
            "schedule": self.schedule is not None,
            "virtual stages": self.has_virtual_stages,
            "equal replicas": self.replicas > 1 and self.constraints.equal_replicas,
            "exchange latency": self.replicas > 1 and devices.link_latency > 0 and any(exchanging),
            "limits": self.constraints.limited or bool(pinned),
        }
        return tuple(name for name, asked in wanted.items() if asked)
