"""The schedules of torch.distributed.pipelining; all that is private in it is used here."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import (
    _Action,
    _add_reduce_grad,
    _add_send_recv,
    _PipelineScheduleRuntime,
)

from partitioner.integrations.torch.pipelines.stage_module import StageModule


class PassTime(NamedTuple):
    """A pass that a rank ran: stage, letter as in a table, microbatch, begin and end in seconds."""

    stage: int
    direction: str
    microbatch: int
    begin: float
    end: float


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

    def _timed(self, letter: str, microbatch: int, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        begin = self._now()
        found = run(microbatch, *args, **kwargs)
        self.passes.append(PassTime(self.stage_index, letter, microbatch, begin, self._now()))
        return found

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return perf_counter()


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
        self._rank_of = dict(enumerate(rank_of))
        rows = enumerate(csv.reader(table.splitlines()))
        self.pipeline_order = {rank: [_Action.from_str(cell) for cell in row] for rank, row in rows}
        for stage in stages:
            stage.stage_index_to_group_rank = self._rank_of
        self.stage_index_to_group_rank = self._rank_of
        self.pipeline_order_with_comms = _add_send_recv(
            {rank: _add_reduce_grad(filled(row), microbatches) for rank, row in self.pipeline_order.items()},
            stage_to_rank=self._rank_of.__getitem__,
            num_stages=len(rank_of),
        )

    def _split_inputs(self, args: tuple[Any, ...], kwargs: Any = None) -> tuple[list[Any], list[Any]]:
        """Return the arguments of each microbatch, which are given as such; none on ranks that take none."""
        return list(args) or [()] * self._n_microbatches, [{}] * self._n_microbatches

    def _merge_outputs(self, output_chunks: list[Any]) -> list[Any]:
        """Return the outputs of each microbatch."""
        return output_chunks


def filled(row: Sequence[Any]) -> list[Any]:
    """Return the actions of a row without pauses."""
    return [action for action in row if action is not None]
