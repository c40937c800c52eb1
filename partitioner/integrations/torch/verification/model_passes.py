"""Forward and backward passes of a whole model as autograd runs them, in several processes at a time.

The sum over operators leaves out what autograd itself does and the adding up of gradients; a whole pass has
both. With as many processes as a pipeline has, the times are those of processes that share the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from partitioner.base.argument_types import check_word, is_count
from partitioner.base.errors import OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.integrations.torch.installed import require_torch
from partitioner.integrations.torch.pipelines.processes import in_processes
from partitioner.integrations.torch.profiling.options import CLOCKS, ELAPSED, THREAD
from partitioner.workload.graph import Graph

WARM_UP = 2  # passes that are not counted


@dataclass(frozen=True)
class WholePasses:
    """The times of the passes of a whole model for a microbatch, in ms.

    Parameters
    ----------
    forward, backward
        The median of each; the loss belongs to the forward pass, and without a loss `backward` is 0.
    """

    forward: float
    backward: float

    def applied(self, graph: Graph) -> Graph:
        """Return a graph whose nodes keep their shares of each pass, and whose passes take these times.

        Examples
        --------
        >>> arrays = {"gpu": [1.0, 3.0, 4.0]}, [(0, 1), (1, 2)], [0.0, 0.0]
        >>> graph = Graph.from_arrays(*arrays, backward=[False, False, True])
        >>> WholePasses(6.0, 5.0).applied(graph).time.tolist()
        [[1.5, 4.5, 5.0]]
        """
        time = graph.time.copy()
        for chosen, whole in ((~graph.backward, self.forward), (graph.backward, self.backward)):
            summed = time[:, chosen].sum(axis=1, keepdims=True)
            time[:, chosen] *= np.divide(whole, summed, out=np.ones_like(summed), where=summed > 0)
        return replace(graph, time=time)


def whole_passes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    loss: Callable[..., Any] | None = None,
    targets: tuple[Any, ...] = (),
    processes: int = 2,
    rounds: int = 9,
    clock: str = ELAPSED,
) -> WholePasses:
    """Return the times of a model's passes, run by each of several processes of one thread at a time.

    The processes are forks, so that parameters, gradients and buffers of the model stay as they are here.

    Parameters
    ----------
    model, args, kwargs
        A call of the model, for a microbatch.
    loss, targets
        What makes a scalar of the output and the targets; None for inference.
    processes
        How many run the model at the same time: as many as the pipeline will have.
    rounds
        How often each runs both passes, after two times that are not counted.
    clock
        ``"elapsed"`` or ``"thread"``, as for :func:`partitioner.integrations.torch.profile`.

    Raises
    ------
    OptionError
        If an option is not of its type or range.
    PartitionerError
        If a process fails.
    """
    require_torch()
    check_word("clock", clock, CLOCKS)
    for name, count in {"processes": processes, "rounds": rounds}.items():
        if not is_count(count):
            raise OptionError(f"{name} = {shown(count)}: must be an integer of at least 1")
    read = thread_time if clock == THREAD else perf_counter

    def once() -> tuple[float, float]:
        begin = read()
        output = model(*args, **(kwargs or {}))
        score = None if loss is None else loss(output, *targets)
        middle = read()
        if score is not None:
            score.backward()
        return middle - begin, read() - middle

    def work(_: int) -> list[tuple[float, float]]:
        import torch

        with torch.set_grad_enabled(loss is not None):
            return [once() for _ in range(WARM_UP + rounds)][WARM_UP:]

    found = np.array(in_processes(work, processes)).reshape(-1, 2)
    forward, backward = (np.median(found, axis=0) * MS_PER_SECOND).tolist()
    return WholePasses(forward, backward if loss is not None else 0.0)
