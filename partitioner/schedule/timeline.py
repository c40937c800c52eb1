"""The timeline of a simulated schedule: what ran when, pauses, and memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from partitioner.base.files import write_text
from partitioner.base.markup import html_table
from partitioner.schedule.table import DIRECTIONS, Table
from partitioner.workload.graph import Bools, Floats, Ints

FORMAT = "partitioner-timeline-1"
PARTS = ("in", "compute", "out", "sync")


class Operation(NamedTuple):
    """One part of a pass; `direction` is a letter of `DIRECTIONS`, `part` one of `PARTS`."""

    device: str
    stage: int
    microbatch: int
    direction: str
    part: str
    start: float
    end: float


class Memory(NamedTuple):
    """The memory of a device over time: ``used[i]`` is held from ``time[i]`` until ``time[i + 1]``."""

    time: Floats
    used: Floats


@dataclass(frozen=True, eq=False)
class Timeline:
    """A simulated schedule of `n` passes on `d` devices; times are in the graph's unit.

    Parameters
    ----------
    schedule
        The schedule's name.
    table
        The passes that each device ran, in order; each device in use has a row.
    begin, end
        Shape (n, 4): when the parts of a pass of the table (`PARTS`) began and ended.
    memory
        For each device its memory over time.
    peak_memory, memory_limit
        Shape (d,): the most memory that a device held, and its limit (infinity without a limit).
    in_flight
        Shape (d,): the most samples whose activations a device held at once, counted once for each stage.
    bound
        The largest load of a device: no schedule of this placement takes less time for a sample.
    notes
        What the workload does not determine, and which options have no effect.
    together
        For the first of several devices that run the same passes together (tensor-parallel), all of them;
        they have one row, with the memory of each.
    """

    schedule: str
    table: Table
    begin: Floats
    end: Floats
    memory: tuple[Memory, ...]
    peak_memory: Floats
    memory_limit: Floats
    in_flight: Ints
    bound: float
    notes: tuple[str, ...] = ()
    together: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        count = sum(map(len, self.groups))
        return (
            f"<Timeline: {self.schedule}, {self.table.microbatches} microbatches on {count} "
            f"devices, makespan {self.makespan:.6g}>"
        )

    def _repr_html_(self) -> str:
        columns = zip(self.devices, self.bubble.tolist(), self.peak_memory.tolist(), strict=True)
        rows = [(name, f"{bubble:.1%}", f"{peak:.6g}") for name, bubble, peak in columns]
        return html_table(repr(self)[1:-1], ("device", "bubble", "peak memory"), rows)

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices that have a row."""
        return self.table.devices

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The devices of each row: one, or those that run its passes together."""
        return tuple(self.together.get(name, (name,)) for name in self.devices)

    @property
    def makespan(self) -> float:
        """The time at which the last part of a pass ends; the first begins at 0."""
        return float(self.end.max(initial=0.0))

    @property
    def time_per_sample(self) -> float:
        """The makespan divided by the number of microbatches."""
        return self.makespan / max(1, self.table.microbatches)

    @property
    def throughput(self) -> float:
        """Microbatches in a unit of time; infinity if nothing takes time."""
        return 1 / self.time_per_sample if self.time_per_sample > 0 else np.inf

    @property
    def efficiency(self) -> float:
        """The bound divided by the time per sample: the achieved fraction of the largest throughput."""
        return self.bound / self.time_per_sample if self.time_per_sample > 0 else 1.0

    @property
    def busy(self) -> Floats:
        """Shape (d,): how long each device processes, transfers or exchanges weights.

        Time in which several of these run in parallel counts once.
        """
        return np.array([self._covered(i) for i in range(len(self.devices))])

    @property
    def bubble(self) -> Floats:
        """Shape (d,): the fraction of the makespan in which a device is idle.

        This includes the time before its first pass and after its last one. For p equal stages and m
        microbatches the bubble is (p - 1) / (m + p - 1) on every device under GPipe and 1F1B.
        """
        if self.makespan <= 0:
            return np.zeros(len(self.devices))
        return np.asarray(np.clip(1 - self.busy / self.makespan, 0.0, 1.0))  # rounding never goes below 0

    @property
    def fits(self) -> Bools:
        """Shape (d,): whether the memory of a device never exceeds its limit."""
        return np.asarray(self.peak_memory <= self.memory_limit)

    def operations(self) -> Iterator[Operation]:
        """Yield every part that takes time, and all processing, device by device in order of the passes."""
        for i, name in enumerate(self.devices):
            for k in range(self.table.start[i], self.table.start[i + 1]):
                stage, microbatch = int(self.table.stage[k]), int(self.table.microbatch[k])
                direction = DIRECTIONS[self.table.direction[k]]
                for part, begin, end in zip(PARTS, self.begin[k].tolist(), self.end[k].tolist(), strict=True):
                    if part == "compute" or begin < end:
                        yield Operation(name, stage, microbatch, direction, part, begin, end)

    def to_json(self) -> str:
        """Return the timeline as a JSON object, which :func:`partitioner.load_timeline` reads."""
        return json.dumps(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the timeline as plain data: for each device its passes, their times, and its memory.

        For other programs it also has the figures that follow from these: `makespan`, `time_per_sample`, and
        for each device `busy` and `bubble`.
        """
        names = ("schedule", "bound", "makespan", "time_per_sample")
        record: dict[str, Any] = {"format": FORMAT} | {name: getattr(self, name) for name in names}
        record |= {"microbatches": self.table.microbatches, "at_once": self.table.at_once}
        busy, bubble = self.busy.tolist(), self.bubble.tolist()
        record["devices"] = [
            self._device(i) | {"busy": busy[i], "bubble": bubble[i]} for i in range(len(self.devices))
        ]
        return record | ({"notes": list(self.notes)} if self.notes else {})

    def _device(self, device: int) -> dict[str, Any]:
        name, memory = self.devices[device], self.memory[device]
        row = slice(self.table.start[device], self.table.start[device + 1])
        limit = float(self.memory_limit[device])
        return {
            "name": name,
            **({"together": list(self.together[name])} if name in self.together else {}),
            "peak_memory": float(self.peak_memory[device]),
            "memory_limit": limit if np.isfinite(limit) else None,
            "in_flight": int(self.in_flight[device]),
            "passes": self.table.rows()[name],
            "begin": self.begin[row].tolist(),
            "end": self.end[row].tolist(),
            "memory": {"time": memory.time.tolist(), "used": memory.used.tolist()},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as JSON; the file holds all of it or stays as it was.

        Raises
        ------
        PartitionerError
            If the file cannot be written.
        """
        write_text(path, self.to_json() + "\n")

    def _covered(self, device: int) -> float:
        """Return the length of the union of the intervals in which the device's parts run."""
        row = slice(self.table.start[device], self.table.start[device + 1])
        begin, end = self.begin[row].ravel(), self.end[row].ravel()
        order = np.argsort(begin, kind="stable")
        begin, reached = begin[order], np.maximum.accumulate(end[order])
        first = np.append(True, begin[1:] > reached[:-1])[: len(begin)]
        last = np.append(first[1:], True)[: len(begin)]
        return float((reached[last] - begin[first]).sum())
