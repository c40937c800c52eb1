"""The tables of schedules with several stages on each device."""

from __future__ import annotations

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.schedule.kinds.kind import require_pairs
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.virtual_stages.schedules import VirtualSchedule


def table_of_rows(name: str, schedule: VirtualSchedule, passes: Passes, microbatches: int) -> Table:
    """Return the table of a schedule for the devices and stages of the passes.

    Parameters
    ----------
    name
        The name of the schedule, for messages.
    schedule
        Which stages each device has, and the order of its passes.
    passes, microbatches
        The passes of a sample, and the number of samples.

    Raises
    ------
    OptionError
        If the stages are not on the devices that the schedule has them on, stages have replicas, or the
        schedule does not run with that number of stages or microbatches.
    """
    devices, chunks = _devices(name, schedule, passes)
    count = len(devices)
    broken = schedule.rule(count, microbatches)
    if broken:
        raise OptionError(f"microbatches = {microbatches}: {broken} for schedule {name!r}")
    order = sorted(range(count), key=lambda rank: devices[rank])
    rows = [schedule.row(rank, count, chunks, microbatches) for rank in order]
    stages = [
        np.array(schedule.stages_of(rank, count, chunks))[row.chunk]
        for rank, row in zip(order, rows, strict=True)
    ]
    return Table(
        tuple(passes.names[devices[rank]] for rank in order),
        np.cumsum([0, *map(len, stages)]),
        np.concatenate(stages),
        np.concatenate([row.microbatch for row in rows]),
        np.concatenate([row.direction for row in rows]),
    )


def _devices(name: str, schedule: VirtualSchedule, passes: Passes) -> tuple[list[int], int]:
    """Return the devices in the order of their first stages, and the number of stages of each."""
    require_pairs(name, passes)
    if any(len(copies) > 1 for copies in passes.replicas.values()):
        raise OptionError(f"schedule = {name!r}: does not support replicas")
    order = passes.stage_devices()
    count = len(passes.replicas)
    devices, chunks = order[:count], len(order) // count
    if order != [devices[rank] for rank in schedule.ranks(count, chunks)]:
        where = "stages k and 2 p - 1 - k" if schedule.vee else "stage k"
        there = "k" if schedule.vee else "k mod p"
        raise OptionError(f"schedule = {name!r}: {where} must be on device {there}, for p devices")
    return devices, chunks
