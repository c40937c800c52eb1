"""Timelines as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from partitioner.schedule.timeline import Timeline

FORMAT = "partitioner-timeline-1"


def timeline_json(timeline: Timeline) -> str:
    """One JSON object: the schedule, then for each device what ran when and what it held.

    Beside what a timeline is made of stand the figures that follow from it, for other readers:
    `makespan`, `time_per_sample`, and for each device `busy` and `bubble`.
    """
    busy, bubble = timeline.busy.tolist(), timeline.bubble.tolist()
    devices = [
        _device(timeline, i) | {"busy": busy[i], "bubble": bubble[i]} for i in range(len(timeline.devices))
    ]
    record = {
        "format": FORMAT,
        "schedule": timeline.schedule,
        "microbatches": timeline.table.microbatches,
        "at_once": timeline.table.at_once,
        "bound": timeline.bound,
        "makespan": timeline.makespan,
        "time_per_sample": timeline.time_per_sample,
        "devices": devices,
    }
    return json.dumps(record | ({"notes": list(timeline.notes)} if timeline.notes else {}))


def _device(timeline: Timeline, device: int) -> dict[str, Any]:
    name = timeline.devices[device]
    row = slice(timeline.table.start[device], timeline.table.start[device + 1])
    limit = float(timeline.memory_limit[device])
    return {
        "name": name,
        "peak_memory": float(timeline.peak_memory[device]),
        "memory_limit": limit if math.isfinite(limit) else None,
        "in_flight": int(timeline.in_flight[device]),
        "passes": timeline.table.rows()[name],
        "begin": timeline.begin[row].tolist(),
        "end": timeline.end[row].tolist(),
        "memory": {
            "time": timeline.memory[device].time.tolist(),
            "used": timeline.memory[device].used.tolist(),
        },
    }
