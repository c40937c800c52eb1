"""Reading of the timeline of a simulated schedule from a JSON file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import path_name, read_json
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    filled,
    listing,
    mapping,
    text,
    texts,
    whole,
)
from partitioner.schedule.table import CELL, CELL_RULE, Table
from partitioner.schedule.timeline import FORMAT, PARTS, Memory, Timeline
from partitioner.workload.graph import Floats

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


# Reading of one device of a timeline file.

ROW_FIELDS = (
    *("name", "peak_memory", "memory_limit", "in_flight", "passes", "begin", "end", "memory"),
    *("busy", "bubble", "together"),
)
LARGEST_COUNT = 2**31


@dataclass(frozen=True, eq=False)
class DeviceRow:
    """One device of a timeline file: its passes, their times, its memory, and who runs them together."""

    name: str
    passes: list[str]
    begin: Floats
    end: Floats
    memory: Memory
    peak: float
    limit: float
    in_flight: int
    together: tuple[str, ...] = ()


def read_row(data: Any, where: str, flaws: list[Flaw]) -> DeviceRow:
    """Return the device at a place of the file; add every flaw to `flaws`."""
    record = Record(data, where, flaws)
    no_others(record, ROW_FIELDS)
    passes = record.take("passes", _cells, [])
    begin, end = (record.take(name, _times, np.zeros((0, 4))) for name in ("begin", "end"))
    if "passes" in record.data and not len(passes) == len(begin) == len(end):
        record.note("passes", "", f"has {len(passes)} entries, but begin has {len(begin)} and end {len(end)}")
        passes, begin, end = [], np.zeros((0, 4)), np.zeros((0, 4))
    _check_times(record, begin, end)
    memory = _memory(record)
    limit = record.take("memory_limit", optional_amount, None)
    name = record.take("name", text, where)
    return DeviceRow(
        name=name,
        passes=passes,
        begin=begin,
        end=end,
        memory=memory,
        peak=record.take("peak_memory", amount, 0.0),
        limit=math.inf if limit is None else limit,
        in_flight=record.take("in_flight", _count, 0),
        together=_together(record, name),
    )


def _together(record: Record, name: str) -> tuple[str, ...]:
    """Return the devices that run the passes together, of which the named one is the first."""
    found = tuple(record.take("together", texts, [], required=False))
    if found and (found[0] != name or len(found) == 1):
        record.note("together", shown(list(found)), f"must be {shown(name)} and at least one other device")
    return found


def _memory(record: Record) -> Memory:
    inner = Record(record.take("memory", mapping, {}), f"{record.where}.memory", record.flaws)
    time, used = (np.array(inner.take(name, _amounts, [0.0])) for name in ("time", "used"))
    if len(time) != len(used):
        inner.note("used", "", f"has {len(used)} entries, but time has {len(time)}")
    elif (np.diff(time) < 0).any():
        inner.note("time", "", "must not decrease")
    return Memory(time, used)


def _check_times(record: Record, begin: Floats, end: Floats) -> None:
    for k in np.flatnonzero((begin > end).any(axis=1)).tolist():
        record.note(f"end[{k}]", shown(end[k].tolist()), "must not be before begin")
    early = (end[:, :2] > begin[:, 1:3]).any(axis=1) | (end[:, 1] > begin[:, 3])
    for k in np.flatnonzero(early).tolist():
        rule = "processing must follow the transfers in, and transfers out and sync must follow processing"
        record.note(f"begin[{k}]", shown(begin[k].tolist()), rule)


def no_others(record: Record, known: tuple[str, ...]) -> None:
    """Add a flaw for each field that is not known."""
    for name in record.others(known):
        record.note(name, "", f"is not a field; these are {', '.join(known)}")


def _cells(value: Any) -> list[str]:
    found = texts(value)
    if any(CELL.fullmatch(cell) is None for cell in found):
        raise RuleBrokenError(f"each {CELL_RULE.partition(';')[0]}")
    return found


def _amounts(value: Any) -> list[float]:
    return [amount(item) for item in filled(value)]


def _times(value: Any) -> Floats:
    """Return the times of the parts of passes, shape (passes, 4)."""
    for item in listing(value):
        if not isinstance(item, list) or len(item) != len(PARTS):
            raise RuleBrokenError(f"must be a list of lists of {len(PARTS)} times: {', '.join(PARTS)}")
    return np.array([_amounts(item) for item in value], dtype=np.float64).reshape(-1, len(PARTS))


def _count(value: Any) -> int:
    if not 0 <= whole(value) < LARGEST_COUNT:
        raise RuleBrokenError(f"must be a whole number from 0 to {LARGEST_COUNT - 1}")
    return whole(value)


def optional_count(value: Any) -> int | None:
    """Return a whole number of at least 1, or None for null."""
    if value is None:
        return None
    if _count(value):
        return _count(value)
    raise RuleBrokenError("must be a whole number of at least 1, or null")


def optional_amount(value: Any) -> float | None:
    """Return a finite number of at least 0, or None for null."""
    return None if value is None else amount(value)
