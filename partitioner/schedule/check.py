"""Checks of a pass table: whether it schedules every pass, can run, and keeps to the devices' memory."""

from __future__ import annotations

from collections import Counter

import numpy as np

from partitioner.schedule.memory import use_of
from partitioner.schedule.passes import Passes, kinds_of, positions
from partitioner.schedule.running import run_table
from partitioner.schedule.table import BACKWARD, DIRECTIONS, INPUT, Table
from partitioner.workload.graph import Floats, Ints


def check(
    table: Table,
    passes: Passes,
    microbatches: int | None = None,
    memory_limit: Floats | None = None,
    versions: bool = False,
) -> tuple[str, ...]:
    """Return a message for every rule that a table breaks; empty if it can run.

    The rules: each pass of each microbatch runs once, on a device that holds its stage, on the same replica
    forward and backward, and after the passes of its microbatch that it needs. Devices do not wait for one
    another in a cycle. If limits are given, no device ever holds more memory than its limit.

    Parameters
    ----------
    table
        The passes that each device runs, in order.
    passes
        The passes of a sample, see :func:`partitioner.schedule.reading.read_passes`.
    microbatches
        The number of microbatches; by default that of the table.
    memory_limit
        Shape (devices of the table,): the memory of each device; None to leave memory unchecked.
    versions
        Whether every sample in flight keeps its version of the weights.
    """
    count = table.microbatches if microbatches is None else microbatches
    found = _devices(table, passes)
    if found:
        return tuple(found)
    kinds = kinds_of(table, passes)
    found = _cells(table, kinds, passes, count) + _counts(table, kinds, passes, count)
    if found:
        return tuple(found)
    where = positions(table, kinds, passes, count)
    found = (
        _misplaced(table, kinds, passes) + _replicas(table, where, passes) + _sequence(table, where, passes)
    )
    found = found or _deadlocks(table, passes)
    if not found and memory_limit is not None:
        found = _memory(table, passes, memory_limit, versions)
    return tuple(found)


def _cell(table: Table, k: int) -> str:
    return f"{table.stage[k]}{DIRECTIONS[table.direction[k]]}{table.microbatch[k]}"


def _devices(table: Table, passes: Passes) -> list[str]:
    used = [passes.names[i] for copies in passes.replicas.values() for i in copies]
    twice = [f"device {name} has two rows" for name, n in Counter(table.devices).items() if n > 1]
    return twice + [
        f"device {name} is not in use; those in use are {', '.join(used)}"
        for name in dict.fromkeys(table.devices)
        if name not in used
    ]


def _cells(table: Table, kinds: Ints, passes: Passes, microbatches: int) -> list[str]:
    """Return a message for every cell that is not a pass of the pipeline."""
    halves = bool((passes.direction == INPUT).any())
    parts = "I and W" if halves else "B" if (passes.direction == BACKWARD).any() else "none"
    found = [
        f"{_cell(table, k)}: no such pass; there are {passes.stages} stages, backward passes: {parts}"
        for k in np.flatnonzero(kinds < 0).tolist()
    ]
    return found + [
        f"{_cell(table, k)}: there are {microbatches} microbatches, counted from 0"
        for k in np.flatnonzero(table.microbatch >= microbatches).tolist()
    ]


def _counts(table: Table, kinds: Ints, passes: Passes, microbatches: int) -> list[str]:
    """Return a message for every pass that is missing or runs more than once."""
    sound = (kinds >= 0) & (table.microbatch < microbatches)
    times = np.zeros((len(passes), microbatches), dtype=np.int64)
    np.add.at(times, (kinds[sound], table.microbatch[sound]), 1)
    return [
        f"{passes.stage[i]}{DIRECTIONS[passes.direction[i]]}{m} "
        + ("is missing" if times[i, m] == 0 else f"is listed {times[i, m]} times")
        for i, m in np.argwhere(times != 1).tolist()
    ]


def _misplaced(table: Table, kinds: Ints, passes: Passes) -> list[str]:
    """Return a message for every pass on a device that does not hold its stage."""
    position = {name: i for i, name in enumerate(passes.names)}
    lead = {device: key for key, copies in passes.replicas.items() for device in copies}
    row = np.array([lead[position[name]] for name in table.devices], dtype=np.int64)
    wrong = np.flatnonzero(row[table.row] != passes.device[kinds])
    return [
        f"{_cell(table, k)} is on {table.devices[table.row[k]]}, "
        f"its stage on {', '.join(passes.names[i] for i in passes.replicas[int(passes.device[kinds[k]])])}"
        for k in wrong.tolist()
    ]


def _replicas(table: Table, where: Ints, passes: Passes) -> list[str]:
    """Return a message for every microbatch that changes from one replica of a stage to another."""
    found = []
    for lead in passes.replicas:
        row = table.row[where[passes.device == lead]]
        for m in np.flatnonzero((row != row[:1]).any(axis=0)).tolist():
            names = ", ".join(sorted({table.devices[i] for i in row[:, m].tolist()}))
            found.append(f"microbatch {m} of the stage of {passes.names[lead]} is on more than one: {names}")
    return found


def _sequence(table: Table, where: Ints, passes: Passes) -> list[str]:
    """Return a message for every pass that comes before a pass that it needs on the same device."""
    after = np.repeat(np.arange(len(passes)), np.diff(passes.before_start))
    first, second = where[passes.before], where[after]
    wrong = (table.row[first] == table.row[second]) & (first > second)
    return [
        f"{_cell(table, int(second[i, m]))} needs {_cell(table, int(first[i, m]))}, which comes later on "
        f"{table.devices[table.row[first[i, m]]]}"
        for i, m in np.argwhere(wrong).tolist()
    ]


def _deadlocks(table: Table, passes: Passes) -> list[str]:
    """Return a message that names the devices that wait for one another in a cycle, if there are any."""
    _, end = run_table(table, passes)
    stuck = ~np.isfinite(end[:, 1])
    if not stuck.any():
        return []
    rows, first = np.unique(table.row[stuck], return_index=True)
    heads = np.flatnonzero(stuck)[first].tolist()
    places = [f"{table.devices[i]} at {_cell(table, k)}" for i, k in zip(rows.tolist(), heads, strict=True)]
    return [f"devices wait for one another: {', '.join(places)}"]


def _memory(table: Table, passes: Passes, limit: Floats, versions: bool) -> list[str]:
    uses = use_of(table, passes, versions)
    return [
        f"{name} holds {use.peak:,.6g} ({use.in_flight} samples in flight), its memory is {limit[i]:,.6g}"
        for i, (name, use) in enumerate(zip(table.devices, uses, strict=True))
        if use.peak > limit[i]
    ]
