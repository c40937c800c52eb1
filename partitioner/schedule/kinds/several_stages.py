"""The tables of schedules with several stages on each device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.schedule.kinds.kind import require_pairs
from partitioner.schedule.passes import Passes
from partitioner.schedule.table import Table
from partitioner.workload.graph import Ints
from partitioner.workload.virtual_stages.schedules import Row, VirtualSchedule


def table_of_rows(name: str, schedule: VirtualSchedule, passes: Passes, microbatches: int) -> Table:
    """Return the table of a schedule for the devices and stages of the passes.

    Where every device has r replicas there are r copies of the pipeline, which take the microbatches in turn:
    each runs the schedule with its own ones.

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
        If the stages are not on the devices that the schedule has them on, devices have different numbers of
        replicas, or the schedule does not run with that number of stages or microbatches of a copy.
    """
    devices, chunks = _devices(name, schedule, passes)
    copies = _copies(name, passes)
    known: dict[int, list[tuple[Ints, Row]]] = {}
    rows = []
    for copy in range(copies):
        own = np.arange(copy, microbatches, copies)
        if len(own) not in known:
            _check_number(name, schedule, len(devices), copies, len(own))
            known[len(own)] = list(_rows(schedule, len(devices), chunks, len(own)))
        for lead, (stages, row) in zip(devices, known[len(own)], strict=True):
            rows.append((passes.replicas[lead][copy], stages, own[row.microbatch], row.direction))
    rows.sort(key=lambda row: row[0])
    return Table(
        tuple(passes.names[device] for device, *_ in rows),
        np.cumsum([0, *(len(stages) for _, stages, *_ in rows)]),
        np.concatenate([stages for _, stages, _, _ in rows]),
        np.concatenate([own for _, _, own, _ in rows]),
        np.concatenate([directions for *_, directions in rows]),
    )


def _rows(
    schedule: VirtualSchedule, devices: int, chunks: int, microbatches: int
) -> Iterator[tuple[Ints, Row]]:
    """Yield the passes of each device, and before them the stage of each pass."""
    for rank in range(devices):
        row = schedule.row(rank, devices, chunks, microbatches)
        yield np.array(schedule.stages_of(rank, devices, chunks))[row.chunk], row


def _copies(name: str, passes: Passes) -> int:
    """Return how many copies of the pipeline there are: as many as every device has replicas."""
    counts = sorted({len(copies) for copies in passes.replicas.values()})
    if len(counts) > 1:
        found = " or ".join(map(str, counts))
        raise OptionError(f"schedule = {name!r}: needs as many replicas of each device, there are {found}")
    return counts[0]


def _check_number(name: str, schedule: VirtualSchedule, devices: int, copies: int, microbatches: int) -> None:
    """Refuse a number of microbatches of a copy with which the schedule does not run."""
    of = "" if copies == 1 else f" of one of {copies} copies of the pipeline"
    broken = schedule.rule(devices, microbatches) if microbatches else "must be at least 1"
    if broken:
        raise OptionError(f"microbatches = {microbatches}{of}: {broken} for schedule {name!r}")


def _devices(name: str, schedule: VirtualSchedule, passes: Passes) -> tuple[list[int], int]:
    """Return the devices in the order of their first stages, and the number of stages of each."""
    require_pairs(name, passes)
    order = passes.stage_devices()
    count = len(passes.replicas)
    devices, chunks = order[:count], len(order) // count
    if order != [devices[rank] for rank in schedule.ranks(count, chunks)]:
        where = "stages k and 2 p - 1 - k" if schedule.vee else "stage k"
        there = "k" if schedule.vee else "k mod p"
        raise OptionError(f"schedule = {name!r}: {where} must be on device {there}, for p devices")
    return devices, chunks
