"""Timelines made by hand: GPipe over equal stages."""

from __future__ import annotations

import numpy as np

from partitioner.schedule.table import BACKWARD, FORWARD, Table
from partitioner.schedule.timeline import Memory, Timeline
from partitioner.workload.graph import Bools, Floats

MOVED = 0.125


def gpipe(devices: int, microbatches: int, *, limit: float = np.inf, at_once: bool = False) -> Timeline:
    """Forward passes take 1, backward passes 2, either transfer 1/8; an exchange of 1/2 ends it.

    Each forward pass adds 100 to a device's memory of 50, each backward pass gives 100 back. `at_once`
    makes each transfer in begin with its pass's processing.
    """
    device, direction, microbatch = (
        index.ravel()
        for index in np.meshgrid(np.arange(devices), [0, 1], np.arange(microbatches), indexing="ij")
    )
    turned = direction == BACKWARD
    first = device + microbatch
    second = devices + microbatches - 1 + 2 * (devices - 1 - device + microbatch)
    start = np.where(turned, second, first).astype(float)
    end = start + np.where(turned, 2.0, 1.0)
    begin = np.stack((start, start + MOVED * (not at_once), end - MOVED, end), axis=1)
    last = np.stack((start + MOVED, end - MOVED, end, end), axis=1)
    final = turned & (microbatch == microbatches - 1)
    last[final, 3] += 0.5
    table = Table(
        tuple(f"accelerator{i}" for i in range(devices)),
        np.arange(devices + 1) * 2 * microbatches,
        device,
        microbatch,
        np.where(turned, BACKWARD, FORWARD),
    )
    memory = tuple(_memory(start, end, device == i, turned) for i in range(devices))
    peak = np.array([float(entry.used.max()) for entry in memory])
    flights = np.full(devices, microbatches)
    return Timeline("gpipe", table, begin, last, memory, peak, np.full(devices, limit), flights, 3.0)


def _memory(start: Floats, end: Floats, here: Bools, turned: Bools) -> Memory:
    time = np.concatenate(([0.0], start[here & ~turned], end[here & turned]))
    change = np.concatenate(
        ([50.0], np.full((here & ~turned).sum(), 100.0), np.full((here & turned).sum(), -100.0))
    )
    order = np.argsort(time, kind="stable")
    return Memory(time[order], np.cumsum(change[order]))
