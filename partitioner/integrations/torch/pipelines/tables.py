"""The schedules of this package for stages of a model of torch."""

from __future__ import annotations

from dataclasses import replace

from partitioner.exports.torch_pipelining import line_table
from partitioner.exports.torch_schedule import torch_schedule
from partitioner.integrations.torch.pipelines.stages import PipelineStages
from partitioner.schedule.table import Table
from partitioner.workload.devices import DeviceKind, Devices


def table_of_stages(stages: PipelineStages, schedule: str, microbatches: int) -> Table:
    """Return which passes each device runs, and in which order; a device has the name that the plan gives it.

    Raises
    ------
    OptionError
        If the schedule does not support the stages or the number of microbatches.
    """
    names = {device: f"rank{rank}" for rank, device in enumerate(stages.devices)}
    hardware = Devices((DeviceKind("rank", len(names)),))
    table = line_table([names[stage.device] for stage in stages.modules], hardware, schedule, microbatches)
    back = {name: device for device, name in names.items()}
    return replace(table, devices=tuple(back[name] for name in table.devices))


def csv_of_stages(stages: PipelineStages, schedule: str, microbatches: int) -> str:
    """Return the schedule as torch reads it: a row for each rank."""
    return torch_schedule(table_of_stages(stages, schedule, microbatches))
