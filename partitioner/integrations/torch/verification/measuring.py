"""The run of a pipeline on this machine, with as many processes as the plan uses devices."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.integrations.torch.installed import require_torch
from partitioner.integrations.torch.pipelines.processes import in_processes
from partitioner.integrations.torch.pipelines.stages import PipelineStages
from partitioner.integrations.torch.verification.foreign_load import CpuClock
from partitioner.integrations.torch.verification.measured import MeasuredRun
from partitioner.schedule.table import Table
from partitioner.schedule.timeline import Memory, Timeline


def measure_pipeline(
    stages: PipelineStages,
    args: tuple[Any, ...],
    *,
    kwargs: Mapping[str, Any] | None = None,
    schedule: str | None = None,
    microbatches: tuple[int, int] = (4, 16),
    loss: Callable[..., Any] | None = None,
    target: Any = None,
    rounds: int = 3,
    seconds: float = 600.0,
) -> MeasuredRun:
    """Run a pipeline in processes of one thread each, and return what was measured.

    Parameters
    ----------
    stages
        See :func:`partitioner.integrations.torch.pipelines.stages_of`.
    args, kwargs, target
        The arguments of the model and the target of the loss for one microbatch; all microbatches are equal.
    schedule, loss
        See :class:`partitioner.integrations.torch.pipelines.PipelineRank`.
    microbatches
        Two numbers of microbatches, the smaller one first; the time per sample is their difference in time
        over that in number.
    rounds
        How often each is run after one round that is not counted; medians are returned.
    seconds
        The longest that the processes may take.

    Raises
    ------
    OptionError
        If an option is not of its type or range.
    PartitionerError
        If a process fails, or the time is over.
    """
    require_torch()
    few, many = _counts(microbatches)
    if not is_count(rounds):
        raise OptionError(f"rounds = {shown(rounds)}: must be an integer of at least 1")
    from partitioner.integrations.torch.verification.rank_times import RankTimes, Sample, rank_times

    name = schedule or ("inference" if loss is None else "1f1b")
    sample = Sample(tuple(args), dict(kwargs or {}), target)
    clock = CpuClock.now()
    found: list[RankTimes] = in_processes(
        lambda _: rank_times(stages, sample, name, (few, many), rounds, loss),
        len(stages.devices),
        seconds=seconds,
    )
    foreign = clock.foreign(sum(one.processor for one in found))
    memory = [float(one.held + one.kept) for one in found]
    short, long = (_median([one.spans[count] for one in found]) for count in (few, many))
    return MeasuredRun(
        schedule=name,
        microbatches=(few, many),
        batches=(short, long),
        timeline=_timeline(name, stages.devices, [one.passes for one in found], memory),
        memory=dict(zip(stages.devices, memory, strict=True)),
        foreign=foreign,
        busiest=max(statistics.median(one.computing) for one in found) * MS_PER_SECOND,
    )


def _counts(microbatches: object) -> tuple[int, int]:
    if isinstance(microbatches, Sequence) and len(microbatches) == 2 and all(map(is_count, microbatches)):
        few, many = microbatches
        if few < many:
            return few, many
    raise OptionError(f"microbatches = {shown(microbatches)}: must be two integers, the smaller one first")


def _median(spans: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the median time of a round: from the first begin of a rank to the last end."""
    rounds = zip(*spans, strict=True)
    times = [max(end for _, end in one) - min(begin for begin, _ in one) for one in rounds]
    return float(statistics.median(times)) * MS_PER_SECOND


def _timeline(
    name: str, devices: Sequence[str], passes: Sequence[Sequence[Any]], memory: Sequence[float]
) -> Timeline:
    """Return the passes of all ranks as a timeline that begins with the first pass."""
    rows = {
        device: [f"{one.stage}{one.direction}{one.microbatch}" for one in row]
        for device, row in zip(devices, passes, strict=True)
    }
    seconds = [(one.asked, one.arrived, one.begin, one.end) for row in passes for one in row]
    times = np.array(seconds) * MS_PER_SECOND
    times = np.maximum(times - times[:, 2].min(), 0.0)
    busy = [sum(one.end - one.begin for one in row) * MS_PER_SECOND for row in passes]
    table = Table.from_rows(rows)
    return Timeline(
        schedule=f"{name}, measured",
        table=table,
        begin=times[:, [0, 2, 3, 3]],
        end=times[:, [1, 3, 3, 3]],
        memory=tuple(Memory(np.array([0.0]), np.array([held])) for held in memory),
        peak_memory=np.array(memory),
        memory_limit=np.full(len(devices), np.inf),
        in_flight=np.array([_in_flight(row) for row in passes]),
        bound=max(busy) / table.microbatches,
        notes=("a transfer is shown while its receiver waits for it; sends run beside what a device does",),
    )


def _in_flight(passes: Sequence[Any]) -> int:
    """Return the most forward passes whose backward pass had not begun."""
    held: dict[int, int] = defaultdict(int)
    most = 0
    for one in passes:
        held[one.stage] += {"F": 1, "B": -1, "W": -1}.get(one.direction, 0)
        most = max(most, sum(held.values()))
    return most
