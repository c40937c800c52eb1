"""Reading of one device of a timeline file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, shown
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
from partitioner.schedule.table import CELL, CELL_RULE
from partitioner.schedule.timeline import PARTS, Memory
from partitioner.workload.graph import Floats

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
