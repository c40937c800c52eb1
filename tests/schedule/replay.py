"""A slow second opinion: is what a timeline says possible, and is nothing later than it has to be?"""

from __future__ import annotations

import math
from collections import defaultdict

from partitioner.schedule import Timeline
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import DIRECTIONS

Spot = tuple[int, int, int]


def recomputed(found: Timeline, passes: Passes) -> dict[Spot, float]:
    """When each pass begins if devices do one thing at a time: by plain repetition until nothing changes.

    Keys are stage, direction and microbatch. Only for "sequential" communication without replicas' sync.
    """
    table = found.table
    spots = [
        (int(s), int(d), int(m))
        for s, d, m in zip(table.stage, table.direction, table.microbatch, strict=True)
    ]
    number = {(int(passes.stage[i]), int(passes.direction[i])): i for i in range(len(passes))}
    begin = dict.fromkeys(spots, 0.0)
    changed = True
    while changed:
        changed = False
        for k, spot in enumerate(spots):
            i = number[spot[:2]]
            needs = [
                (int(passes.stage[j]), int(passes.direction[j]), spot[2])
                for j in passes.before[passes.before_start[i] : passes.before_start[i + 1]]
            ]
            if k not in table.start:
                needs.append(spots[k - 1])
            last = max((begin[need] + length(passes, number[need[:2]]) for need in needs), default=0.0)
            if last > begin[spot]:
                begin[spot], changed = last, True
    return begin


def length(passes: Passes, i: int) -> float:
    return float(passes.into[i] + passes.compute[i] + passes.out[i])


def contradictions(found: Timeline, passes: Passes, communication: str) -> list[str]:
    """Every way in which the operations break the model of a device or come before what they need."""
    unit = {
        "sequential": {"in": 0, "compute": 0, "out": 0, "sync": 0},
        "overlapped": {"in": 1, "compute": 0, "out": 1, "sync": 0},
        "duplex": {"in": 1, "compute": 0, "out": 2, "sync": 0},
    }[communication]
    at_work: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    ends: dict[tuple[int, str, int], tuple[float, str]] = {}
    begins: dict[tuple[int, str, int], float] = {}
    for operation in found.operations():
        if operation.end > operation.start:
            at_work[operation.device, unit[operation.part]].append((operation.start, operation.end))
        spot = (operation.stage, operation.direction, operation.microbatch)
        ends[spot] = (
            max(operation.end if operation.part != "sync" else 0.0, ends.get(spot, (0, ""))[0]),
            operation.device,
        )
        begins[spot] = min(operation.start, begins.get(spot, math.inf))
    wrong = [
        f"{device} does two things at {second[0]}"
        for (device, _), spans in at_work.items()
        for first, second in zip(sorted(spans), sorted(spans)[1:], strict=False)
        if second[0] < first[1]
    ]
    name = {i: (int(passes.stage[i]), DIRECTIONS[passes.direction[i]]) for i in range(len(passes))}
    for m in range(found.table.microbatches):
        for i in range(len(passes)):
            for j in passes.before[passes.before_start[i] : passes.before_start[i + 1]].tolist():
                first, second = (*name[j], m), (*name[i], m)
                if ends[first][1] != ends[second][1] and begins[second] < ends[first][0]:
                    wrong.append(f"{second} begins before {first} has left")
    return wrong
