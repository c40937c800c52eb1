"""How the rows of tables are made: passes sorted by rounds, or in turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.graph import Floats, Ints


class Lane(NamedTuple):
    """A device's work: its position, its stage's first device, its passes, its own microbatches."""

    device: int
    lead: int
    passes: Ints
    microbatches: Ints


def lanes(passes: Passes, microbatches: int) -> Iterator[Lane]:
    """The devices in use, in the order of their positions; replicas take microbatches in turn."""
    found = [
        Lane(device, lead, np.flatnonzero(passes.device == lead), np.arange(i, microbatches, len(replicas)))
        for lead, replicas in passes.replicas.items()
        for i, device in enumerate(replicas)
    ]
    return iter(sorted(found, key=lambda lane: lane.device))


def table_of(passes: Passes, rows: list[tuple[int, Ints, Ints]], at_once: int | None = None) -> Table:
    """The table of rows, each a device's position, its kinds of passes in order, and their microbatches."""
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
    """A row sorted by key; `keys` has one array of shape (own microbatches,) for each of its passes."""
    order = np.argsort(np.concatenate(keys), kind="stable")
    kinds = np.repeat(lane.passes, len(lane.microbatches))[order]
    return lane.device, kinds, np.tile(lane.microbatches, len(lane.passes))[order]


def rounds(passes: Passes, microbatches: int, phases: Ints | None = None) -> Table:
    """Each round every virtual stage serves the next sample (paper, Sections 5.1 and 5.2).

    Phases, if given for every kind of pass, follow one another on each device.
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
    """Each device runs all its passes of a sample before the next one's; one sample is on its way at once."""
    rows = [
        by_key(lane, [len(passes) * lane.microbatches + i for i in lane.passes.tolist()])
        for lane in lanes(passes, microbatches)
    ]
    return table_of(passes, rows, at_once=1)


def depths(passes: Passes) -> Ints:
    """Shape (n,): the round in which each pass serves the first sample."""
    found = np.zeros(len(passes), dtype=np.int64)
    for i in range(len(passes)):
        before = passes.before[passes.before_start[i] : passes.before_start[i + 1]]
        lag = np.where(passes.device[before] == passes.device[i], 1, passes.lag)
        found[i] = (found[before] + lag).max(initial=0)
    return found


def in_turns(lane: Lane, warmup: int, delay: int = 0) -> tuple[int, Ints, Ints]:
    """Forward passes ahead by `warmup`, then forward and backward in turn, then what is left.

    The gradients of the weights, if they are passes of their own, come `delay` microbatches later.
    """
    count = np.arange(len(lane.microbatches))
    warmup = min(warmup, len(count))
    keys = [3 * count, 3 * (count + warmup) + 1, 3 * (count + warmup + delay) + 2]
    return by_key(lane, list(keys[: len(lane.passes)]))


def around(passes: Passes) -> dict[int, tuple[int, int]]:
    """For the first device of each stage of a line how many devices work before it and after it."""
    order = passes.stage_devices()
    counts = np.array([len(passes.replicas[lead]) for lead in order])
    ahead = np.cumsum(counts) - counts
    behind = counts.sum() - ahead - counts
    return {lead: (int(ahead[i]), int(behind[i])) for i, lead in enumerate(order)}
