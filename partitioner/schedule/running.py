"""The times at which the passes of a table run: with given durations, or one tick for each pass."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from partitioner.schedule.passes import Passes, kinds_of, positions
from partitioner.schedule.table import Table
from partitioner.workload.graph import Floats, Ints

UNITS = {"sequential": (0, 0, 0), "overlapped": (1, 0, 1), "duplex": (1, 0, 2)}
SYNC = 3  # the last of the four parts of a pass
UNBOUNDED = np.iinfo(np.int64).max


def run_table(
    table: Table, passes: Passes, communication: str = "sequential", synchronisation: str = "added"
) -> tuple[Floats, Floats]:
    """Return when the four parts of every pass begin and end, shape (passes, 4) each.

    The times are infinity for passes that wait for one another in a cycle. The table must hold each pass of
    each microbatch once. The exchange of weights occupies the processing unit if `synchronisation` is
    ``"added"``, else a separate unit. A pass without transfers in begins when its processing begins.
    """
    from partitioner.schedule.kernel import PassRows, PassTimes, PassWaits, run

    kinds = kinds_of(table, passes)
    where = positions(table, kinds, passes, table.microbatches)
    length = np.stack((passes.into, passes.compute, passes.out, passes.sync), axis=1)
    units = np.array([*UNITS[communication], 0 if synchronisation == "added" else 3])
    ahead = np.array(
        [_fetched_ahead(kinds[table.start[i] : table.start[i + 1]]) for i in range(len(table.devices))],
        dtype=np.int64,
    )
    closing = _closing(table, passes, kinds)
    at_once = UNBOUNDED if table.at_once is None else table.at_once
    before = passes.before_start, passes.before
    begin, end = run(
        PassRows(table.start, table.row, kinds, table.microbatch, where),
        PassWaits(*before, *_reversed_rows(*before)),
        PassTimes(length, closing, units),
        at_once,
        ahead,
    )
    nothing = begin[:, 0] == end[:, 0]
    begin[nothing, 0] = end[nothing, 0] = begin[nothing, 1]
    return begin, end


def with_late_exchange(table: Table, passes: Passes, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Return the times of :func:`run_table` if exchanges after a batch begin when all passes have ended."""
    closing = _closing(table, passes, kinds_of(table, passes))
    last = table.start[1:][np.diff(table.start) > 0] - 1
    begin, end = begin.copy(), end.copy()
    lengths = closing[np.diff(table.start) > 0]
    latest = max(end[:, :SYNC].max(initial=0.0), np.delete(end[:, SYNC], last).max(initial=0.0))
    begin[last, SYNC], end[last, SYNC] = latest, latest + lengths
    return begin, end


def _closing(table: Table, passes: Passes, kinds: Ints) -> Floats:
    """Return the time of the exchange after the last pass of each row, shape (rows,)."""
    leads = [passes.device[kinds[i]] if i < j else 0 for i, j in pairwise(table.start.tolist())]
    return passes.closing[np.array(leads, dtype=np.int64)]


def clocks(table: Table, passes: Passes) -> Ints:
    """Return the tick at which each pass runs if a pass takes one tick and a transfer none, shape (n,).

    The tick is -1 for passes that wait for one another in a cycle.
    """
    zero, one = np.zeros(len(passes)), np.ones(len(passes))
    nothing = np.zeros_like(passes.closing)
    ticks = replace(passes, into=zero, compute=one, out=zero, sync=zero, closing=nothing)
    begin, _ = run_table(table, ticks)
    return np.where(np.isfinite(begin[:, 1]), begin[:, 1], -1).astype(np.int64)


def grid(table: Table, passes: Passes) -> dict[str, list[str]]:
    """Return for each device a cell for each tick, as torch writes them: ``2F0``, or empty for a pause."""
    tick = clocks(table, passes)
    found = {}
    for i, (name, cells) in enumerate(table.rows().items()):
        row = [""] * (int(tick.max(initial=-1)) + 1)
        for k, cell in zip(range(table.start[i], table.start[i + 1]), cells, strict=True):
            row[tick[k]] = cell
        found[name] = row
    return found


def _fetched_ahead(row: Ints) -> int:
    """Return for how many passes a device may fetch inputs: for the next round while one round runs."""
    return max(1, 2 * len(np.unique(row)) - 1)


def _reversed_rows(start: Ints, before: Ints) -> tuple[Ints, Ints]:
    """Return the rows of passes that wait for each pass, from the rows of those that each pass waits for."""
    waiting = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.argsort(before, kind="stable")
    count = np.bincount(before, minlength=len(start) - 1)
    return np.concatenate(([0], np.cumsum(count))), waiting[order]
