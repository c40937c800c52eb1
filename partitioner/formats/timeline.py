"""Reading of the timeline of a simulated schedule from a JSON file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import path_name, read_json
from partitioner.formats.record import Record, RuleBrokenError, amount, filled, text, texts
from partitioner.formats.timeline_rows import DeviceRow, no_others, optional_count, read_row
from partitioner.schedule.table import Table
from partitioner.schedule.timeline import FORMAT, Timeline

FIELDS = (
    *("format", "schedule", "microbatches", "at_once", "bound", "makespan", "time_per_sample", "devices"),
    "notes",
)


def load_timeline(path: str | os.PathLike[str]) -> Timeline:
    """Return the timeline in a file that :meth:`partitioner.schedule.Timeline.save` has written.

    Figures that follow from the rest of the file may be left out; otherwise they must agree with it.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    timeline = _timeline(Record(read_json(path), "file", flaws))
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return timeline


def _timeline(top: Record) -> Timeline:
    no_others(top, FIELDS)
    top.take("format", _format, "")
    rows = [
        read_row(data, f"devices[{i}]", top.flaws) for i, data in enumerate(top.take("devices", filled, []))
    ]
    _check_repeated(rows, top)
    at_once = top.take("at_once", optional_count, None, required=False)
    timeline = Timeline(
        schedule=top.take("schedule", text, ""),
        table=_table(rows, at_once),
        begin=np.concatenate([np.zeros((0, 4)), *(row.begin for row in rows)]),
        end=np.concatenate([np.zeros((0, 4)), *(row.end for row in rows)]),
        memory=tuple(row.memory for row in rows),
        peak_memory=np.array([row.peak for row in rows]),
        memory_limit=np.array([row.limit for row in rows]),
        in_flight=np.array([row.in_flight for row in rows], dtype=np.int64),
        bound=top.take("bound", amount, 0.0),
        notes=tuple(top.take("notes", texts, [], required=False)),
        together={row.name: row.together for row in rows if row.together},
    )
    if not top.flaws:
        _check_figures(top, timeline)
    return timeline


def _table(rows: list[DeviceRow], at_once: int | None) -> Table:
    found = Table.from_rows({row.name: row.passes for row in rows})
    return Table(found.devices, found.start, found.stage, found.microbatch, found.direction, at_once)


def _check_repeated(rows: list[DeviceRow], top: Record) -> None:
    """Add a flaw for each name of a device, and each pass, that is in the file more than once."""
    names: set[str] = set()
    seen: set[str] = set()
    for i, row in enumerate(rows):
        for place, name in enumerate(row.together or (row.name,)):
            if name in names:
                field = "together" if place else "name"
                top.flaws.append(Flaw(f"devices[{i}]", field, shown(name), "is given twice"))
            names.add(name)
        for cell in row.passes:
            if cell in seen:
                top.flaws.append(Flaw(f"devices[{i}]", "passes", shown(cell), "is given twice"))
            seen.add(cell)


def _check_figures(top: Record, timeline: Timeline) -> None:
    """Add a flaw for each figure that does not agree with the rest of the file."""
    expected = {"makespan": timeline.makespan, "time_per_sample": timeline.time_per_sample}
    _agree(top, expected | {"microbatches": timeline.table.microbatches})
    busy, bubble = timeline.busy.tolist(), timeline.bubble.tolist()
    for i, data in enumerate(top.data["devices"]):
        largest = float(timeline.memory[i].used.max())
        figures = {"peak_memory": largest, "busy": busy[i], "bubble": bubble[i]}
        _agree(Record(data, f"devices[{i}]", top.flaws), figures)


def _agree(record: Record, expected: Mapping[str, float]) -> None:
    for name, value in expected.items():
        given = record.take(name, amount, value, required=False)
        if not math.isclose(given, value, rel_tol=1e-9, abs_tol=1e-9):
            record.note(name, shown(given), f"must be {value:.12g}, which follows from the rest of the file")


def _format(value: Any) -> str:
    if value != FORMAT:
        raise RuleBrokenError(f"must be {FORMAT!r}")
    return FORMAT
