"""A pipeline of torch that was run, as figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.integrations.torch.verification.foreign_load import MOST_FOREIGN
from partitioner.schedule.timeline import PARTS, Timeline

COMPUTE = PARTS.index("compute")


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """What was measured of a pipeline; times are in ms.

    Parameters
    ----------
    schedule
        The schedule that ran.
    microbatches
        The two numbers of microbatches that were run, the smaller one first.
    batches
        The median time of a batch of each.
    timeline
        The passes of a batch of the larger number in the form of a simulated schedule. The part ``"in"`` of a
        pass is the time in which its device waits for a tensor of another one; sends are not in it.
    memory
        For each device the bytes that it held at most: parameters, gradients, buffers, and what autograd
        kept for the backward pass. There is no optimizer, and memory inside operators is not counted.
    foreign
        The part of all cores that other programs used; None if unknown.
    busiest
        The processor time for a batch of the larger number of the rank that used most; None if unknown. It
        says something beside other programs, too.
    """

    schedule: str
    microbatches: tuple[int, int]
    batches: tuple[float, float]
    timeline: Timeline
    memory: Mapping[str, float]
    foreign: float | None
    busiest: float | None = None

    @property
    def time_per_sample(self) -> float:
        """The time that a further microbatch takes: in the steady state."""
        (few, many), (short, long) = self.microbatches, self.batches
        return (long - short) / (many - few)

    @property
    def busy(self) -> dict[str, float]:
        """For each device the time inside its passes for a sample."""
        inside = (self.timeline.end - self.timeline.begin)[:, COMPUTE]
        busy = np.bincount(self.timeline.table.row, inside, len(self.timeline.devices))
        return dict(zip(self.timeline.devices, (busy / self.microbatches[1]).tolist(), strict=True))

    @property
    def bubble(self) -> dict[str, float]:
        """For each device the fraction of the batch outside its passes."""
        inside = {device: busy * self.microbatches[1] for device, busy in self.busy.items()}
        return {device: max(0.0, 1 - time / self.batches[1]) for device, time in inside.items()}

    @property
    def doubt(self) -> str:
        """Why these figures do not judge a prediction; empty if they do."""
        if self.foreign is None:
            return "the load of other programs is not known on this system"
        if self.foreign > MOST_FOREIGN:
            return f"other programs used {self.foreign:.0%} of the cores, more than {MOST_FOREIGN:.0%}"
        return ""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        names = (
            "schedule",
            "microbatches",
            "batches",
            "time_per_sample",
            "busy",
            "bubble",
            "foreign",
            "busiest",
            "doubt",
        )
        return {name: getattr(self, name) for name in names} | {"memory": dict(self.memory)}
