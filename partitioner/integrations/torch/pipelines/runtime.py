"""The schedules of torch.distributed.pipelining; all that is private in it is used here."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.pipelining.schedules import (
    _Action,
    _add_reduce_grad,
    _add_send_recv,
    _PipelineScheduleRuntime,
)

from partitioner.integrations.torch.pipelines.stage_module import StageModule


class PassTime(NamedTuple):
    """A pass that a rank ran; times are seconds of a clock of all processes.

    Parameters
    ----------
    stage, direction, microbatch
        As in a table.
    begin, end
        When it ran.
    asked, arrived
        From when until when the rank waited for its tensors right before it; both are `begin` for a pass that
        waits for none of another rank.
    """

    stage: int
    direction: str
    microbatch: int
    begin: float
    end: float
    asked: float
    arrived: float


class TimedStage(PipelineStage):  # type: ignore[misc]
    """A stage of torch that notes when its passes ran.

    Parameters
    ----------
    module
        The stage.
    stages
        The number of all stages.
    device
        The device of torch that it runs on.
    """

    def __init__(self, module: StageModule, stages: int, device: torch.device) -> None:
        super().__init__(
            module, module.index, stages, device, input_args=module.inputs, output_args=module.outputs
        )
        self.passes: list[PassTime] = []
        self._wait: tuple[float, float] | None = None
        self._whole = module.whole_backward and not self.is_first

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run a forward pass."""
        return self._timed("F", fwd_chunk_id, super().forward_one_chunk, *args, **kwargs)

    def backward_one_chunk(self, bwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run a backward pass, or the half of it that computes the gradients of the inputs.

        torch finds the second half from the gradients of the inputs, and loses those of parameters that reach
        an output without an input; a stage with such an output computes all gradients in the first half.
        """
        letter = "B" if kwargs.get("full_backward", True) else "I"
        if self._whole:
            kwargs["full_backward"] = True
        return self._timed(letter, bwd_chunk_id, super().backward_one_chunk, *args, **kwargs)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run the half of a backward pass that computes the gradients of the weights."""
        run = (lambda *_, **__: None) if self._whole else super().backward_weight_one_chunk
        return self._timed("W", bwd_chunk_id, run, *args, **kwargs)

    def wait_for(self, works: list[Any]) -> None:
        """Wait until the tensors of the next pass are there."""
        asked = self._now()
        for work in works:
            work.wait()
        self._wait = asked, self._now()

    def _timed(self, letter: str, microbatch: int, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        begin = self._now()
        found = run(microbatch, *args, **kwargs)
        wait, self._wait = self._wait or (begin, begin), None
        self.passes.append(PassTime(self.stage_index, letter, microbatch, begin, self._now(), *wait))
        return found

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return perf_counter()


class Receive(NamedTuple):
    """The receives of a pass, which torch waits for right before it."""

    stage: TimedStage
    works: list[Any]

    def wait(self) -> None:
        """Wait until the tensors are there."""
        self.stage.wait_for(self.works)


class Receives(dict[tuple[int, int], list[Receive]]):
    """The receives of a rank that it has not waited for, by stage and microbatch; waiting is timed.

    Parameters
    ----------
    stages
        The stages of the rank.
    """

    def __init__(self, stages: Sequence[TimedStage]) -> None:
        super().__init__()
        self._stages = {stage.stage_index: stage for stage in stages}

    def __setitem__(self, key: tuple[int, int], works: list[Any]) -> None:
        super().__setitem__(key, [Receive(self._stages[key[0]], works)])


class TableSchedule(_PipelineScheduleRuntime):  # type: ignore[misc]
    """The runtime of torch with a schedule and a rank of each stage that are given.

    torch's own loading of such a table takes only schedules with backward passes.

    Parameters
    ----------
    stages
        The stages of this rank.
    table
        The schedule in torch's format ``compute_only``: CSV, with a row for each rank.
    rank_of
        The rank of each stage of the pipeline.
    microbatches
        The number of microbatches.
    loss
        What makes a scalar of the output and the target, whose gradients are added; None for inference.
    """

    def __init__(
        self,
        stages: list[TimedStage],
        table: str,
        rank_of: Sequence[int],
        microbatches: int,
        loss: Callable[..., Any] | None,
    ) -> None:
        super().__init__(stages, microbatches, loss_fn=loss, scale_grads=False)
        self.given: list[dict[str, Any]] = []  # by microbatch the inputs of the model that stages read
        self.fwd_recv_ops, self.bwd_recv_ops = Receives(stages), Receives(stages)
        self._rank_of = dict(enumerate(rank_of))
        rows = enumerate(csv.reader(table.splitlines()))
        self.pipeline_order = {rank: [_Action.from_str(cell) for cell in row] for rank, row in rows}
        for stage in stages:
            stage.stage_index_to_group_rank = self._rank_of
        self.stage_index_to_group_rank = self._rank_of
        transferred = _add_send_recv(
            {rank: _add_reduce_grad(filled(row), microbatches) for rank, row in self.pipeline_order.items()},
            stage_to_rank=self._rank_of.__getitem__,
            num_stages=len(rank_of),
        )
        self.pipeline_order_with_comms = _with_waits(transferred)

    def _split_inputs(self, args: tuple[Any, ...], kwargs: Any = None) -> tuple[list[Any], list[Any]]:
        """Return the arguments of each microbatch, which are given as such; none on ranks that take none."""
        return list(args) or [()] * self._n_microbatches, self.given or [{}] * self._n_microbatches

    def _merge_outputs(self, output_chunks: list[Any]) -> list[Any]:
        """Return the outputs of each microbatch."""
        return output_chunks


def _with_waits(actions: dict[int, list[Any]]) -> dict[int, list[Any]]:
    """Return the actions with a wait for each send, which torch asks for from 2.15 on."""
    add: Callable[[Any], Any] = getattr(schedules, "_add_wait_send", lambda unchanged: unchanged)
    return dict(add(actions))


def filled(row: Sequence[Any]) -> list[Any]:
    """Return the actions of a row without pauses."""
    return [action for action in row if action is not None]
