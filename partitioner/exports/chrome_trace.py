"""Timelines as Chrome traces, which Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import write_text
from partitioner.results.timeline_table import row_titles
from partitioner.schedule.timeline import PARTS, Timeline
from partitioner.workload.device_validation import LARGEST

Event = dict[str, Any]
NANOSECONDS = 1e6  # in a millisecond
CHANNELS = ("compute", "in", "out", "sync")


def chrome_trace(runs: Timeline | Mapping[str, Timeline], *, milliseconds: float = 1.0) -> str:
    """Return timelines in the trace event format (JSON), with times in microseconds.

    Each run is a process. Each device has a thread for its processing, with the device's name, and one for
    each of its channels in use: ``gpu0 in``, ``gpu0 out`` and ``gpu0 sync``. Slices are named ``F3`` or
    ``B3``: pass and microbatch, with the stage among their arguments. A counter for each device shows its
    memory. Devices that run the same passes together share their threads, ``gpu2-3``.

    Parameters
    ----------
    runs
        A timeline, or several timelines by the name of the run.
    milliseconds
        The graph's unit of time in milliseconds.

    Raises
    ------
    OptionError
        If `milliseconds` is not a positive number.
    """
    number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    if not number or not 0 < milliseconds <= LARGEST:
        raise OptionError(
            f"milliseconds = {shown(milliseconds)}: must be a positive number of at most {LARGEST:g}"
        )
    for each in runs.values() if isinstance(runs, Mapping) else [runs]:
        require_type("runs", each, Timeline)
    named = runs if isinstance(runs, Mapping) else {runs.schedule: runs}
    first, events = 1, []
    for process, (name, timeline) in enumerate(named.items(), 1):
        run = _Run(timeline, process, first, NANOSECONDS * milliseconds)
        events += [*run.labels(name), *run.slices(), *run.memory()]
        first += len(PARTS) * len(timeline.devices)
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def save_chrome_trace(
    runs: Timeline | Mapping[str, Timeline], path: str | os.PathLike[str], *, milliseconds: float = 1.0
) -> None:
    """Write :func:`chrome_trace` to a file.

    Raises
    ------
    OptionError
        If `milliseconds` is not a positive number.
    PartitionerError
        If the file cannot be written.
    """
    write_text(path, chrome_trace(runs, milliseconds=milliseconds) + "\n")


class _Run(NamedTuple):
    """A timeline as a process; `first` is its first thread number, since processes must not share any."""

    timeline: Timeline
    process: int
    first: int
    scale: float

    def labels(self, name: str) -> Iterator[Event]:
        """Yield the names of the process and its threads, in the order in which they are to be shown."""
        yield self._label("process_name", self.first, name=name)
        yield self._label("process_sort_index", self.first, sort_index=self.process)
        used = self.timeline.begin < self.timeline.end
        for i, device in enumerate(row_titles(self.timeline)):
            row = used[self.timeline.table.start[i] : self.timeline.table.start[i + 1]]
            for channel in CHANNELS:
                if channel == "compute" or row[:, PARTS.index(channel)].any():
                    thread = self._thread(i, channel)
                    title = device if channel == "compute" else f"{device} {channel}"
                    yield self._label("thread_name", thread, name=title)
                    yield self._label("thread_sort_index", thread, sort_index=thread)

    def slices(self) -> Iterator[Event]:
        """Yield a slice for each part of a pass."""
        position = {name: i for i, name in enumerate(self.timeline.devices)}
        for operation in self.timeline.operations():
            begin, end = self._time(operation.start), self._time(operation.end)
            yield {
                "ph": "X",
                "name": f"{operation.direction}{operation.microbatch}",
                "cat": operation.part,
                "pid": self.process,
                "tid": self._thread(position[operation.device], operation.part),
                "ts": _microseconds(begin),
                "dur": _microseconds(end - begin),
                "args": {"stage": operation.stage, "microbatch": operation.microbatch},
            }

    def memory(self) -> Iterator[Event]:
        """Yield the values of each device's memory over time."""
        for name, memory in zip(row_titles(self.timeline), self.timeline.memory, strict=True):
            for time, used in zip(memory.time.tolist(), memory.used.tolist(), strict=True):
                yield {
                    "ph": "C",
                    "name": f"memory {name}",
                    "pid": self.process,
                    "ts": _microseconds(self._time(time)),
                    "args": {"used": used},
                }

    def _label(self, kind: str, thread: int, **arguments: Any) -> Event:
        return {"ph": "M", "name": kind, "pid": self.process, "tid": thread, "args": arguments}

    def _thread(self, device: int, channel: str) -> int:
        return self.first + device * len(CHANNELS) + CHANNELS.index(channel)

    def _time(self, time: float) -> int:
        """Return a time of the timeline in whole nanoseconds."""
        return round(time * self.scale)


def _microseconds(nanoseconds: int) -> float:
    """Return nanoseconds as microseconds that give the same number of nanoseconds when rounded down.

    Otherwise consecutive slices could overlap by a nanosecond in a viewer that rounds down.
    """
    value = nanoseconds / 1000
    return value if int(value * 1000) == nanoseconds else math.nextafter(value, math.inf)
