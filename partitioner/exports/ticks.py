"""The ticks at which the passes of a pipeline run if each pass takes one tick."""

from __future__ import annotations

from collections.abc import Iterator

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.schedule.table import BACKWARD, FORWARD, INPUT, WEIGHT, Table

Pass = tuple[int, int, int]


def ticks(table: Table) -> list[int]:
    """Return the earliest tick of each pass of a table; transfers take no time.

    A forward pass waits for that of the previous stage. A backward pass (or its first half) waits for the
    forward pass of its stage and the backward pass of the next stage. A second half waits for the first.

    Raises
    ------
    WorkloadError
        If passes wait for one another in a cycle, or for a pass that is missing.

    Examples
    --------
    >>> ticks(Table.from_rows({"a": ["0F0", "0F1"], "b": ["1F0", "1F1"]}))
    [0, 1, 1, 2]
    """
    waits = _waits(table)
    found = [-1] * (len(waits) + 1)  # the last entry is that of all missing passes
    position, stop = table.start[:-1].tolist(), table.start[1:].tolist()
    tick, left = 0, len(waits)
    while left:
        ready = [
            i
            for i, k in enumerate(position)
            if k < stop[i] and all(0 <= found[other] < tick for other in waits[k])
        ]
        if not ready:
            raise WorkloadError(_stuck(table, position))
        for i in ready:
            found[position[i]] = tick
            position[i] += 1
        tick, left = tick + 1, left - len(ready)
    return found[:-1]


def _waits(table: Table) -> list[list[int]]:
    """Return the positions of the passes that each pass waits for; -1 for a pass that is missing."""
    keys = list(zip(table.stage.tolist(), table.direction.tolist(), table.microbatch.tolist(), strict=True))
    number = {key: k for k, key in enumerate(keys)}
    last = int(table.stage.max(initial=-1))
    return [[number.get(key, -1) for key in _before(one, last, number)] for one in keys]


def _before(one: Pass, last: int, known: dict[Pass, int]) -> Iterator[Pass]:
    stage, direction, microbatch = one
    if direction == WEIGHT:
        yield stage, INPUT, microbatch
    elif direction == FORWARD and stage > 0:
        yield stage - 1, FORWARD, microbatch
    elif direction in (BACKWARD, INPUT):
        yield stage, FORWARD, microbatch
        if stage < last:
            half = (stage + 1, INPUT, microbatch)
            yield half if half in known else (stage + 1, BACKWARD, microbatch)


def _stuck(table: Table, position: list[int]) -> list[Flaw]:
    rule = "can never run in a pipeline in which each stage needs the one before it"
    return [
        Flaw(f"device {name}", "", cells[k - table.start[i]], rule)
        for i, (k, (name, cells)) in enumerate(zip(position, table.rows().items(), strict=True))
        if k < table.start[i + 1]
    ]
