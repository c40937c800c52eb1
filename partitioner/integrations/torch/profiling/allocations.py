"""The bytes that operators allocate: at their peak, and those that are left once they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch

from partitioner.integrations.torch.profiling.runnable import RunnableGraph

MARK = "partitioner operator"


class OperatorBytes(NamedTuple):
    """The most bytes that an operator has allocated at one time, and those that it leaves allocated."""

    peak: float
    left: float


def allocations(
    program: RunnableGraph, device: Any, check: Callable[[], None]
) -> Mapping[str, OperatorBytes]:
    """Return the bytes that each operator allocates, by its name, as the allocator counts them in a run."""
    run = _on_cuda if torch.device(device).type == "cuda" else _on_cpu
    return dict(zip(program.names, run(program, device, check), strict=True))


def _on_cpu(program: RunnableGraph, device: Any, check: Callable[[], None]) -> list[OperatorBytes]:
    """Return the bytes of each operator by the memory events of torch's profiler.

    The older profiler of torch is taken, whose events come in their order and which prints nothing.
    """
    from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
    from torch.autograd import _disable_profiler_legacy, _enable_profiler_legacy

    settings = ProfilerConfig(ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig())
    _enable_profiler_legacy(settings)
    try:
        program.run(_marked, check)
    finally:
        threads = _disable_profiler_legacy()
    found = [each for events in threads for each in by_mark(_plain(events))]
    return found


def _marked(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with torch.autograd.profiler.record_function(MARK):
        return target(*args, **kwargs)


def _plain(events: Iterable[Any]) -> Iterable[tuple[str, str, int]]:
    """Yield the kind, the name and the bytes of each event of a thread."""
    for event in events:
        kind = event.kind()
        yield kind, event.name(), event.cpu_memory_usage() if kind == "memory_alloc" else 0


def by_mark(events: Iterable[tuple[str, str, int]]) -> list[OperatorBytes]:
    """Return the bytes of each marked operator of a thread, from events by kind, name and bytes.

    Examples
    --------
    >>> inside = [("push", "add", 0), ("memory_alloc", "", 8), ("memory_alloc", "", -6), ("pop", "", 0)]
    >>> by_mark([("memory_alloc", "", 5), ("push", MARK, 0), *inside, ("pop", "", 0)])
    [OperatorBytes(peak=8.0, left=2.0)]
    """
    found, depth, now, most = [], 0, 0, 0
    for kind, name, nbytes in events:
        if kind == "push" and (depth or name == MARK):
            depth += 1
        elif kind == "pop" and depth:
            depth -= 1
            if not depth:
                found.append(OperatorBytes(float(most), float(max(now, 0))))
                now = most = 0
        elif kind == "memory_alloc" and depth:
            now += nbytes
            most = max(most, now)
    return found


def _on_cuda(program: RunnableGraph, device: Any, check: Callable[[], None]) -> list[OperatorBytes]:
    """Return the bytes of each operator by the counters of CUDA's allocator."""
    found: list[OperatorBytes] = []

    def counted(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        result = target(*args, **kwargs)
        peak, after = torch.cuda.max_memory_allocated(device), torch.cuda.memory_allocated(device)
        found.append(OperatorBytes(float(peak - before), float(max(after - before, 0))))
        return result

    program.run(counted, check)
    return found
