"""Tables at work: with given times, or one tick a pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.schedule.passes import Passes
from partitioner.schedule.places import kinds_of, positions
from partitioner.schedule.table import Table
from partitioner.workload.graph import Floats, Ints

UNITS = {"sequential": (0, 0, 0), "overlapped": (1, 0, 1), "duplex": (1, 0, 2)}
UNBOUNDED = np.iinfo(np.int64).max


def run_table(
    table: Table, passes: Passes, communication: str = "sequential", synchronisation: str = "added"
) -> tuple[Floats, Floats]:
    """When the four parts of every pass begin and end; infinity for passes that wait for one another.

    The table holds each pass of each microbatch once. The exchange of weights takes the time of the
    processing if it is ``"added"``, else a unit of its own. What has nothing to fetch begins with its
    processing.
    """
    from partitioner.schedule.kernel import run

    kinds = kinds_of(table, passes)
    where = positions(table, kinds, passes, table.microbatches)
    length = np.stack((passes.into, passes.compute, passes.out, passes.sync), axis=1)
    units = np.array([*UNITS[communication], 0 if synchronisation == "added" else 3])
    ahead = np.array(
        [_fetched_ahead(kinds[table.start[i] : table.start[i + 1]]) for i in range(len(table.devices))],
        dtype=np.int64,
    )
    at_once = UNBOUNDED if table.at_once is None else table.at_once
    before = passes.before_start, passes.before
    times: tuple[Floats, Floats] = run(
        table.start,
        table.row,
        kinds,
        table.microbatch,
        where,
        *before,
        *_turned(*before),
        length,
        units,
        at_once,
        ahead,
    )
    begin, end = times
    nothing = begin[:, 0] == end[:, 0]
    begin[nothing, 0] = end[nothing, 0] = begin[nothing, 1]
    return begin, end


def clocks(table: Table, passes: Passes) -> Ints:
    """Shape (n,): at which tick each pass runs if every pass takes one tick and transfers take none.

    -1 for passes that wait for one another.
    """
    zero, one = np.zeros(len(passes)), np.ones(len(passes))
    begin, _ = run_table(table, replace(passes, into=zero, compute=one, out=zero, sync=zero))
    return np.where(np.isfinite(begin[:, 1]), begin[:, 1], -1).astype(np.int64)


def grid(table: Table, passes: Passes) -> dict[str, list[str]]:
    """The table by device and tick, as torch writes schedules: cells such as ``2F0``, empty for a pause."""
    tick = clocks(table, passes)
    found = {}
    for i, (name, cells) in enumerate(table.rows().items()):
        row = [""] * (int(tick.max(initial=-1)) + 1)
        for k, cell in zip(range(table.start[i], table.start[i + 1]), cells, strict=True):
            row[tick[k]] = cell
        found[name] = row
    return found


def _fetched_ahead(row: Ints) -> int:
    """For how many passes a device may fetch: so many that it can fetch for a round during another."""
    return max(1, 2 * len(np.unique(row)) - 1)


def _turned(start: Ints, before: Ints) -> tuple[Ints, Ints]:
    """Rows of what waits for each pass, from rows of what each pass waits for."""
    waiting = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.argsort(before, kind="stable")
    count = np.bincount(before, minlength=len(start) - 1)
    return np.concatenate(([0], np.cumsum(count))), waiting[order]
