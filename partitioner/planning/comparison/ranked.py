"""A schedule of a comparison, with its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.schedule import Timeline


@dataclass(frozen=True, eq=False)
class Ranked:
    """A schedule, and what it costs for the plan.

    Parameters
    ----------
    schedule
        Its name.
    timeline
        What it would give; None if it does not suit the plan.
    against
        Why it cannot be used, in words; empty if it can.
    """

    schedule: str
    timeline: Timeline | None
    against: str = ""

    @property
    def feasible(self) -> bool:
        """Whether the schedule suits the plan and keeps to the memory limits."""
        return not self.against

    @property
    def makespan(self) -> float:
        """The time of all microbatches; infinity if the schedule does not suit the plan."""
        return math.inf if self.timeline is None else self.timeline.makespan

    def as_dict(self) -> dict[str, Any]:
        """Return the schedule and its figures as plain data."""
        record: dict[str, Any] = {"schedule": self.schedule, "feasible": self.feasible}
        record["against"] = self.against
        if self.timeline is None:
            return record
        fullest = fullest_device(self.timeline)
        limit = float(self.timeline.memory_limit[fullest])
        return record | {
            "makespan": self.makespan,
            "time_per_sample": self.timeline.time_per_sample,
            "bubble": bubble_share(self.timeline),
            "fullest_device": self.timeline.devices[fullest],
            "peak_memory": float(self.timeline.peak_memory[fullest]),
            "memory_limit": limit if math.isfinite(limit) else None,
        }


def bubble_share(timeline: Timeline) -> float:
    """Return the fraction of time in which the devices in use are idle, over all of them."""
    return float(timeline.bubble.mean())


def fullest_device(timeline: Timeline) -> int:
    """Return the index of the device nearest to its memory limit; without limits, the fullest one."""
    limited = np.isfinite(timeline.memory_limit)
    if not limited.any():
        return int(timeline.peak_memory.argmax())
    limit = np.where(limited, np.maximum(timeline.memory_limit, np.finfo(float).tiny), np.inf)
    with np.errstate(over="ignore"):  # a limit of almost nothing
        return int((timeline.peak_memory / limit).argmax())
