"""The schedules of this package for stages of a model of torch."""

from __future__ import annotations

from dataclasses import replace

from partitioner.base.errors import OptionError
from partitioner.exports.torch_pipelining import line_table
from partitioner.exports.torch_schedule import torch_schedule
from partitioner.integrations.torch.pipelines.stages import PipelineStages
from partitioner.schedule.table import Table
from partitioner.workload.devices import DeviceKind, Devices


def table_of_stages(stages: PipelineStages, schedule: str | Table, microbatches: int) -> Table:
    """Return which passes each device runs, and in which order; a device has the name that the plan gives it.

    Raises
    ------
    OptionError
        If the schedule does not support the stages or the number of microbatches.
    """
    if isinstance(schedule, Table):
        return _checked(schedule, stages, microbatches)
    names = {device: f"rank{rank}" for rank, device in enumerate(stages.devices)}
    hardware = Devices((DeviceKind("rank", len(names)),))
    table = line_table([names[stage.device] for stage in stages.modules], hardware, schedule, microbatches)
    back = {name: device for device, name in names.items()}
    return replace(table, devices=tuple(back[name] for name in table.devices))


def csv_of_stages(stages: PipelineStages, schedule: str | Table, microbatches: int) -> str:
    """Return the schedule as torch reads it: a row for each rank."""
    return torch_schedule(table_of_stages(stages, schedule, microbatches))


def _checked(table: Table, stages: PipelineStages, microbatches: int) -> Table:
    """Return a table that is given, which must have the stages, their devices and the microbatches."""
    wanted = {(i, stage.device) for i, stage in enumerate(stages.modules)}
    found = {(int(i), table.devices[row]) for i, row in zip(table.stage, table.row, strict=True)}
    if found != wanted:
        stage, device = min(found ^ wanted)
        rule = "is not in it" if (stage, device) in wanted else "is no stage of the plan"
        raise OptionError(f"schedule: stage {stage} on {device} {rule}")
    if table.microbatches != microbatches:
        raise OptionError(f"microbatches = {microbatches}: must be {table.microbatches}, as in the schedule")
    return table
