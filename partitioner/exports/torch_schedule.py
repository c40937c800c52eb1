"""Writing of schedules as the CSV files of torch.distributed.pipelining."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import write_text
from partitioner.schedule.table import BACKWARD, FORWARD, INPUT, WEIGHT, Table
from partitioner.schedule.timeline import Timeline


def torch_ranks(table: Table) -> tuple[str, ...]:
    """Return the devices in the order of torch's ranks: devices of earlier stages come first."""
    require_type("table", table, Table)
    first = [table.stage[table.start[i] : table.start[i + 1]].min() for i in range(len(table.devices))]
    return tuple(table.devices[i] for i in np.argsort(first, kind="stable").tolist())


def torch_schedule(table: Table) -> str:
    r"""Return a table in torch's format ``compute_only``: a row for each rank, see :func:`torch_ranks`.

    A cell is ``2F0``: stage, pass (F forward, B backward, or I and W, its halves) and microbatch. Each
    column is a tick in which every device runs at most one pass; cells of devices that wait are empty.
    torch adds the communication from each stage to the next when it loads the file.

    Raises
    ------
    WorkloadError
        If torch does not support the table: it has replicas, passes of a stage on different devices, or a
        stage that waits for a later one; or it has no backward passes and limits the number of microbatches
        in the pipeline.

    Notes
    -----
    ``_PipelineScheduleRuntime._load_csv`` takes training schedules only: it counts backward passes.

    Examples
    --------
    >>> print(torch_schedule(Table.from_rows({"a": ["0F0", "0B0"], "b": ["1F0", "1B0"]})), end="")
    0F0,,,0B0
    ,1F0,1B0,
    """
    require_type("table", table, Table)
    _refuse([*_scattered(table), *_limited(table)])
    tick = ticks(table)
    cells = table.rows()
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    for name in torch_ranks(table):
        i = table.devices.index(name)
        row = [""] * (max(tick, default=-1) + 1)
        for k, cell in zip(range(table.start[i], table.start[i + 1]), cells[name], strict=True):
            row[tick[k]] = cell
        writer.writerow(row)
    return file.getvalue()


def save_torch_schedule(table: Table, path: str | os.PathLike[str]) -> None:
    """Write :func:`torch_schedule` to a file.

    Raises
    ------
    WorkloadError
        If torch does not support the table.
    PartitionerError
        If the file cannot be written.
    """
    write_text(path, torch_schedule(table))


def refuse_groups(timeline: Timeline) -> None:
    """Raise if several devices run a stage together (tensor-parallel), which torch's file cannot say.

    Raises
    ------
    WorkloadError
        Naming each stage, its devices and the rule.
    """
    table, rule = timeline.table, "torch's file names one rank for each stage"
    _refuse(
        [
            Flaw(f"stage {stage}", "", f"is run by {', '.join(group)} together", rule)
            for i, group in enumerate(timeline.groups)
            if len(group) > 1
            for stage in np.unique(table.stage[table.start[i] : table.start[i + 1]]).tolist()
        ]
    )


def _scattered(table: Table) -> list[Flaw]:
    """Return a flaw for each stage with passes on several devices."""
    rule = "torch puts all passes of a stage on one rank"
    found = []
    for stage in np.unique(table.stage).tolist():
        rows = np.unique(table.row[table.stage == stage]).tolist()
        if len(rows) > 1:
            names = ", ".join(table.devices[i] for i in rows)
            found.append(Flaw(f"stage {stage}", "", f"is on {names}", rule))
    return found


def _limited(table: Table) -> list[Flaw]:
    """Return a flaw if the table limits the microbatches in the pipeline without backward passes.

    With backward passes the order of the passes implies the limit.
    """
    if table.at_once is None or (table.direction != FORWARD).any():
        return []
    return [
        Flaw("schedule", "at_once", str(table.at_once), "torch supports no limit without backward passes")
    ]


def _refuse(flaws: list[Flaw]) -> None:
    if flaws:
        raise WorkloadError(flaws)


# The ticks at which the passes of a pipeline run if each pass takes one tick.

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
