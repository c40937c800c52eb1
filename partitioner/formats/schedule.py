"""Reading of the schedule of a plan file."""

from __future__ import annotations

from typing import Any

from partitioner.base.errors import Flaw, shown
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    flag,
    identifier,
    listing,
    mapping,
    text,
    whole,
)


def read_schedule(top: Record) -> Schedule | None:
    """Return the schedule of a plan for latency; None if the file has none."""
    if "schedule" not in top.data:
        return None
    record = Record(top.take("schedule", mapping, {}), "schedule", top.flaws)
    entries = [
        _run(data, f"schedule.entries[{place}]", top.flaws)
        for place, data in enumerate(record.take("entries", listing, []))
    ]
    path = record.take("critical_path", wholes, [])
    rule = f"must be positions of entries, from 0 to {len(entries) - 1}"
    for place, entry in enumerate(entries):
        if entry.waits_for is not None and entry.waits_for >= len(entries):
            top.flaws.append(Flaw(f"schedule.entries[{place}]", "waits_for", str(entry.waits_for), rule))
    if any(not 0 <= place < len(entries) for place in path):
        record.note("critical_path", shown(path), rule)
    return Schedule(tuple(entries), tuple(path))


def wholes(value: Any) -> list[int]:
    """Return a JSON array of whole numbers."""
    return [whole(item) for item in listing(value)]


def identifiers(value: Any) -> list[int | str]:
    """Return a JSON array of node ids."""
    return [identifier(item) for item in listing(value)]


def optional_whole(value: Any) -> int | None:
    """Return a whole number of at least 0, or None for null."""
    if value is not None and whole(value) < 0:
        raise RuleBrokenError("must be a whole number of at least 0, or null")
    return None if value is None else whole(value)


def _run(data: Any, where: str, flaws: list[Flaw]) -> Run:
    record = Record(data, where, flaws)
    times = ("start", "finish", "transfer_in", "compute", "transfer_out")
    return Run(
        device=record.take("device", text, ""),
        index=record.take("index", optional_whole, None),
        nodes=tuple(record.take("nodes", identifiers, [])),
        backward=record.take("backward", flag, False),
        waits_for=record.take("waits_for", optional_whole, None),
        **{name: record.take(name, amount, 0.0) for name in times},
    )
