"""What a rank of a pipeline measures of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple

import torch
import torch.distributed as distributed
from torch.utils._pytree import tree_leaves, tree_map

from partitioner.integrations.torch.pipelines.pipeline import PipelineRank
from partitioner.integrations.torch.pipelines.stages import PipelineStages


class Sample(NamedTuple):
    """The arguments of the model and the target of the loss, of a microbatch or a batch."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    target: Any


class RankTimes(NamedTuple):
    """The measurements of a rank.

    Parameters
    ----------
    spans
        For each number of microbatches the begin and end of each round, in seconds of a clock of all ranks.
    passes
        The passes of the last round of the larger number.
    held
        Bytes of parameters, their gradients and buffers.
    kept
        The most bytes that autograd kept for the backward pass.
    processor
        The seconds of processor time that the rank used.
    computing
        For each round of the larger number the seconds of processor time of the thread that runs the passes.
    """

    spans: dict[int, list[tuple[float, float]]]
    passes: tuple[Any, ...]
    held: int
    kept: int
    processor: float
    computing: tuple[float, ...]


def rank_times(
    stages: PipelineStages,
    sample: Sample,
    schedule: str,
    counts: tuple[int, int],
    rounds: int,
    loss: Callable[..., Any] | None,
) -> RankTimes:
    """Run a rank for two numbers of microbatches, after one round that is not counted."""
    begin = process_time()
    ranks = {count: PipelineRank(stages, count, schedule, loss) for count in counts}
    spans: dict[int, list[tuple[float, float]]] = {count: [] for count in counts}
    passes: tuple[Any, ...] = ()
    computing: list[float] = []
    for turn in range(rounds + 1):
        for count, rank in ranks.items():
            found, span, used = _step(rank, sample, count)
            spans[count] += [span] if turn else []
            computing += [used] if turn and count == counts[-1] else []
            passes = found.passes
    last, batch = ranks[counts[-1]], _batch(sample, counts[-1])
    held = [*last.parameters(), *(one for each in last.modules for one in each.buffers())]
    kept = KeptBytes(held, [one for one in tree_leaves(batch) if isinstance(one, torch.Tensor)])
    with kept.counting():
        last.step(batch.args, batch.target, kwargs=batch.kwargs)
    grads = [one.grad for one in last.parameters() if one.grad is not None]
    used = process_time() - begin
    return RankTimes(spans, passes, _nbytes([*held, *grads]), kept.peak, used, tuple(computing))


def _step(rank: PipelineRank, sample: Sample, count: int) -> tuple[Any, tuple[float, float], float]:
    """Run one step that all ranks begin together; gradients stay, so that each round does the same."""
    batch = _batch(sample, count)
    distributed.barrier()
    begin, own = perf_counter(), thread_time()
    found = rank.step(batch.args, batch.target, kwargs=batch.kwargs)
    return found, (begin, perf_counter()), thread_time() - own


def _batch(sample: Sample, count: int) -> Sample:
    """Return a batch of equal microbatches."""
    target = None if sample.target is None else torch.cat([sample.target] * count)
    args, kwargs = tree_map(lambda one: _repeated(one, count), (sample.args, sample.kwargs))
    return Sample(args, kwargs, target)


def _repeated(value: Any, count: int) -> Any:
    """Return a tensor of a microbatch for a batch; constants and tensors without a dimension stay."""
    return torch.cat([value] * count) if isinstance(value, torch.Tensor) and value.ndim else value


def _nbytes(tensors: list[Any]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


# The bytes of tensors that autograd keeps for the backward pass, at each moment of a run.


class KeptBytes:
    """Counts the memory of tensors that are kept, each piece of memory once, while its context is open.

    Parameters
    ----------
    own
        Tensors that are there anyway, such as parameters, whose memory does not count.
    batch
        Tensors that are cut into microbatches; of these the microbatches that are kept count.

    Examples
    --------
    >>> weight = torch.ones(2, requires_grad=True)
    >>> kept = KeptBytes([weight])
    >>> with kept.counting():
    ...     result = (weight * torch.ones(2)).sum()
    >>> kept.peak
    8
    """

    def __init__(self, own: Iterable[Any], batch: Iterable[Any] = ()) -> None:
        self._own = {_memory_of(tensor) for tensor in own}
        self._batch = {_memory_of(tensor) for tensor in batch}
        self._users: Counter[tuple[int, int]] = Counter()
        self._bytes = 0
        self.peak = 0

    def counting(self) -> AbstractContextManager[Any]:
        """Return a context in which tensors that autograd saves are counted."""
        found: AbstractContextManager[Any] = torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: _Kept(self, tensor), lambda kept: kept.tensor
        )
        return found

    def change(self, tensor: Any, by: int) -> None:
        """Note that a tensor is kept once more (1) or less (-1)."""
        memory = _memory_of(tensor)
        if memory in self._own:
            return
        part = memory in self._batch
        key = (memory, int(tensor.data_ptr()) if part else 0)
        before = self._users[key]
        self._users[key] += by
        if 0 in (before, self._users[key]):
            self._bytes += by * int(tensor.nbytes if part else tensor.untyped_storage().nbytes())
        self.peak = max(self.peak, self._bytes)


class _Kept:
    """A tensor that is kept for as long as this lives."""

    def __init__(self, count: KeptBytes, tensor: Any) -> None:
        self.count, self.tensor = count, tensor if tensor.is_leaf else tensor.detach()
        count.change(self.tensor, 1)

    def __del__(self) -> None:
        self.count.change(self.tensor, -1)


def _memory_of(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
