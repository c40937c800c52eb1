"""How a pipeline is to be run: replicas, schedule, batch, and what the user demands of stages."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import Devices


@dataclass(frozen=True)
class Regime:
    """What a plan is made for, beside objective and split.

    Parameters
    ----------
    replicas
        How many devices may share a stage.
    schedule
        The schedule that says how many samples a stage holds; None: memory does not depend on it.
    microbatches
        Samples in a batch, for objective ``"batch"`` and schedules that hold all of them; None unknown.
    constraints
        The user's demands.
    """

    replicas: int = 1
    schedule: str | None = None
    microbatches: int | None = None
    constraints: Constraints = NONE

    def features(self, devices: Devices) -> tuple[str, ...]:
        """What a method must be able to do beyond stages of one device each on equal links."""
        pinned = set(self.constraints.pin.values()) - {kind.name for kind in devices.kinds}
        wanted = {
            "replicas": self.replicas > 1,
            "levels": bool(devices.levels),
            "schedule": self.schedule is not None,
            "limits": self.constraints.limited or bool(pinned),
        }
        return tuple(name for name, asked in wanted.items() if asked)
