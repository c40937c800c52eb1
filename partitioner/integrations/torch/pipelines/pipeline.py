"""The stages of a rank under a schedule: steps of a pipeline of processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from partitioner.base.argument_types import is_count, require_callable
from partitioner.base.errors import OptionError, shown
from partitioner.exports.torch_pipelining import line_table
from partitioner.exports.torch_schedule import torch_schedule
from partitioner.integrations.torch.installed import check_version, require_torch
from partitioner.integrations.torch.pipelines.stages import PipelineStages
from partitioner.schedule.table import Table
from partitioner.workload.devices import DeviceKind, Devices


@dataclass(frozen=True, eq=False)
class PipelineStep:
    """What a step of a pipeline gives a rank.

    Parameters
    ----------
    output
        The model's output for the whole batch, on the rank of the last stage; None on other ranks, and for
        training.
    losses
        For training the loss of each microbatch, on the rank of the last stage; empty on other ranks.
    passes
        When each pass of this rank ran, as
        :class:`partitioner.integrations.torch.pipelines.runtime.PassTime`.
    """

    output: Any
    losses: tuple[Any, ...]
    passes: tuple[Any, ...]


class PipelineRank:
    """The stages of this process in a pipeline; the process must have joined torch's process group.

    Parameters
    ----------
    stages
        The stages of the whole pipeline: see :func:`partitioner.integrations.torch.pipelines.stages_of`.
    microbatches
        The number of microbatches of a batch.
    schedule
        The name of a schedule of this package, or a table of passes whose devices are those of the plan; None
        for ``"1f1b"`` with a loss and ``"inference"`` without. Its stages are those of the pipeline: of a
        free split several are on one device.
    loss
        What makes a scalar of the output and the target of a microbatch; gradients are those of the mean
        over the microbatches. None for inference.
    device
        The device of torch that this rank runs on, where the model and the arguments of `stages_of` are.

    Raises
    ------
    OptionError
        If the process group has another number of ranks than the plan has devices, or the schedule does not
        support the stages, the microbatches or the loss; or if its backward passes are in halves and the
        stages recompute.
    BackendUnavailable
        If torch is not installed, or of another version than the one whose schedule runtime is known.
    """

    def __init__(
        self,
        stages: PipelineStages,
        microbatches: int,
        schedule: str | Table | None = None,
        loss: Callable[..., Any] | None = None,
        device: str = "cpu",
    ) -> None:
        require_torch()
        require_callable(loss=loss)
        if not is_count(microbatches):
            raise OptionError(f"microbatches = {shown(microbatches)}: must be an integer of at least 1")
        import torch

        check_version(torch.__version__, "run_pipeline", "")
        from partitioner.integrations.torch.pipelines.runtime import TableSchedule, TimedStage
        from partitioner.integrations.torch.pipelines.tied_copies import TiedCopies

        chosen = schedule or ("inference" if loss is None else "1f1b")
        table = csv_of_stages(stages, chosen, microbatches)
        if ("F" in table and "B" not in table and "I" not in table) != (loss is None):
            rule = "belongs to a schedule with a backward pass, and such a schedule needs one"
            raise OptionError(f"loss with schedule = {shown(chosen)}: a loss {rule}")
        if "I" in table and any(stage.recompute for stage in stages.modules):
            rule = "torch cannot run a checkpoint's backward pass in halves"
            raise OptionError(f"schedule = {shown(chosen)}: with recompute = True, {rule}")
        rank = _own_rank(stages)
        where = torch.device(device)
        self.modules = stages.of_rank(rank)
        self._stages = [TimedStage(module, len(stages.modules), where) for module in self.modules]
        self._form, self._microbatches, self._loss = stages.form, microbatches, loss
        self._inputs = stages.inputs
        self._losses: list[Any] = []
        score = None if loss is None else self._score
        self._tied = TiedCopies(stages.tied, stages.devices)
        self._schedule = TableSchedule(self._stages, table, stages.rank_of, microbatches, score)

    def parameters(self) -> list[Any]:
        """Return the parameters of this rank's stages, each once, as an optimizer takes them."""
        return list({id(one): one for module in self.modules for one in module.parameters()}.values())

    def _score(self, tensors: tuple[Any, ...], target: Any) -> Any:
        """Return what a microbatch adds to the mean loss, and keep its loss.

        torch can divide the gradients by the number of microbatches instead, but then also those of earlier
        steps, which are accumulated.
        """
        assert self._loss is not None
        found = self._loss(self._form.result(tensors), target)
        self._losses.append(found.detach())
        return found / self._microbatches

    def step(
        self, batch: tuple[Any, ...], target: Any = None, *, kwargs: Mapping[str, Any] | None = None
    ) -> PipelineStep:
        """Run the schedule once; gradients are added to those that the model's parameters have.

        Each copy of tied weights gets the sum of the gradients of all copies, so that optimizers of equal
        settings keep the copies equal.

        Parameters
        ----------
        batch, kwargs
            The arguments of the model for the whole batch; only the rank of the first stage reads them, and
            those of stages that compute themselves what depends on inputs alone. Tensors are cut into
            microbatches along the first dimension, except those that have the shape of one microbatch, which
            all of them get.
        target
            The target of the whole batch; only the rank of the last stage reads it.

        Raises
        ------
        OptionError
            On a rank that reads them, if the arguments have another form than those of `stages_of`.
        """
        import torch

        for stage in self._stages:
            stage.passes.clear()
        first, last = (any(getattr(one, end) for one in self._stages) for end in ("is_first", "is_last"))
        self._losses.clear()
        trains = self._loss is not None
        given: dict[str, Any] = {"target": target} if last and trains else {}
        reads = first or any(module.given for module in self.modules)
        calls = self._form.tensors(batch, kwargs or {}, self._microbatches) if reads else []
        self._schedule.given = [dict(zip(self._inputs, one, strict=True)) for one in calls]
        self._tied.begin()
        with torch.set_grad_enabled(trains):
            results = self._schedule.step(*calls if first else (), return_outputs=not trains, **given)
        self._tied.add_up()
        output = self._form.merged(results) if results is not None else None
        passes = sorted((one for stage in self._stages for one in stage.passes), key=lambda one: one.begin)
        return PipelineStep(output, tuple(self._losses), tuple(passes))


def run_pipeline(
    stages: PipelineStages,
    batch: tuple[Any, ...],
    target: Any = None,
    *,
    microbatches: int,
    kwargs: Mapping[str, Any] | None = None,
    schedule: str | Table | None = None,
    loss: Callable[..., Any] | None = None,
    device: str = "cpu",
) -> PipelineStep:
    """Run one batch through a pipeline of processes, of which this process is a rank.

    The arguments are those of :class:`PipelineRank` and its method ``step``; for more than one step, make one
    and call that.
    """
    return PipelineRank(stages, microbatches, schedule, loss, device).step(batch, target, kwargs=kwargs)


def _own_rank(stages: PipelineStages) -> int:
    import torch.distributed as distributed

    if not distributed.is_initialized():
        rule = "must be initialised: use partitioner.integrations.torch.pipelines.process_group"
        raise OptionError(f"torch's process group: {rule}")
    if distributed.get_world_size() != len(stages.devices):
        rule = f"must be {len(stages.devices)}, the number of devices that the plan uses"
        raise OptionError(f"ranks of the process group = {distributed.get_world_size()}: {rule}")
    return int(distributed.get_rank())


# The schedules of this package for stages of a model of torch.


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
