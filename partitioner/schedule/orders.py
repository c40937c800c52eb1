"""The rows of tables: passes sorted by rounds, one sample after another, or in turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.graph import Floats, Ints


class Lane(NamedTuple):
    """The work of a device: its position, its stage's first device, its passes, and its microbatches."""

    device: int
    lead: int
    passes: Ints
    microbatches: Ints


def lanes(passes: Passes, microbatches: int) -> Iterator[Lane]:
    """Return the work of each device in use, by position; replicas take microbatches in turn."""
    found = [
        Lane(device, lead, np.flatnonzero(passes.device == lead), np.arange(i, microbatches, len(replicas)))
        for lead, replicas in passes.replicas.items()
        for i, device in enumerate(replicas)
    ]
    return iter(sorted(found, key=lambda lane: lane.device))


def table_of(passes: Passes, rows: list[tuple[int, Ints, Ints]], at_once: int | None = None) -> Table:
    """Return the table of rows of (position of the device, kinds of passes in order, their microbatches)."""
    kinds = np.concatenate([kinds for _, kinds, _ in rows])
    return Table(
        tuple(passes.names[device] for device, _, _ in rows),
        np.cumsum([0, *(len(kinds) for _, kinds, _ in rows)]),
        passes.stage[kinds],
        np.concatenate([microbatches for _, _, microbatches in rows]),
        passes.direction[kinds],
        at_once,
    )


def by_key(lane: Lane, keys: list[Floats | Ints]) -> tuple[int, Ints, Ints]:
    """Return a row sorted by key; `keys` has an array of shape (microbatches,) for each pass of `lane`."""
    order = np.argsort(np.concatenate(keys), kind="stable")
    kinds = np.repeat(lane.passes, len(lane.microbatches))[order]
    return lane.device, kinds, np.tile(lane.microbatches, len(lane.passes))[order]


def rounds(passes: Passes, microbatches: int, phases: Ints | None = None) -> Table:
    """Return the table in which every virtual stage serves the next sample in each round.

    See the paper, Sections 5.1 and 5.2. If `phases` has a number for each kind of pass, every device runs the
    passes of phase 0 first, then those of phase 1.
    """
    depth = depths(passes)
    phase = np.zeros(len(passes), dtype=np.int64) if phases is None else phases
    length = microbatches + int(depth.max(initial=0)) + 1
    rows = [
        by_key(lane, [phase[i] * length + depth[i] + lane.microbatches for i in lane.passes.tolist()])
        for lane in lanes(passes, microbatches)
    ]
    return table_of(passes, rows)


def one_by_one(passes: Passes, microbatches: int) -> Table:
    """Return the table that runs one sample at a time."""
    rows = [
        by_key(lane, [len(passes) * lane.microbatches + i for i in lane.passes.tolist()])
        for lane in lanes(passes, microbatches)
    ]
    return table_of(passes, rows, at_once=1)


def depths(passes: Passes) -> Ints:
    """Return the round in which each pass serves the first sample, shape (n,)."""
    found = np.zeros(len(passes), dtype=np.int64)
    for i in range(len(passes)):
        before = passes.before[passes.before_start[i] : passes.before_start[i + 1]]
        lag = np.where(passes.device[before] == passes.device[i], 1, passes.lag)
        found[i] = (found[before] + lag).max(initial=0)
    return found


def in_turns(lane: Lane, warmup: int, delay: int = 0) -> tuple[int, Ints, Ints]:
    """Return a row of `warmup` forward passes, then forward and backward passes in turn, then the rest.

    If the gradients of the weights are separate passes, they come `delay` microbatches later.
    """
    count = np.arange(len(lane.microbatches))
    warmup = min(warmup, len(count))
    keys = [3 * count, 3 * (count + warmup) + 1, 3 * (count + warmup + delay) + 2]
    return by_key(lane, list(keys[: len(lane.passes)]))


def around(passes: Passes) -> dict[int, tuple[int, int]]:
    """Return for the first device of each stage how many devices the stages before and after it have."""
    order = passes.stage_devices()
    counts = np.array([len(passes.replicas[lead]) for lead in order])
    ahead = np.cumsum(counts) - counts
    behind = counts.sum() - ahead - counts
    return {lead: (int(ahead[i]), int(behind[i])) for i, lead in enumerate(order)}
