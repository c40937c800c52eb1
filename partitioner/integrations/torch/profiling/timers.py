"""Timers of calls: CPU time of the calling thread, the time that passes, or events of a CUDA device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch

from partitioner.integrations.torch.profiling.options import THREAD
from partitioner.workload.graph import Floats

EMPTY_CALLS = 64


class OperatorTimer(Protocol):
    """What runs calls and keeps how long each took."""

    def run(self, target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a call."""
        ...

    def milliseconds(self) -> Floats:
        """Return the times of the calls since the last time that it was asked."""
        ...


class CpuTimer:
    """A timer that reads a clock of the CPU before and after a call.

    Parameters
    ----------
    read
        Returns nanoseconds.

    Examples
    --------
    >>> timer = timer_of("cpu", "elapsed")
    >>> timer.run(max, (1, 2), {}), len(timer.milliseconds()), len(timer.milliseconds())
    (2, 1, 0)
    """

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._spent: list[int] = []

    def run(self, target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a call."""
        before = self._read()
        result = target(*args, **kwargs)
        self._spent.append(self._read() - before)
        return result

    def milliseconds(self) -> Floats:
        """Return the times of the calls since the last time that it was asked."""
        spent, self._spent = self._spent, []
        return np.array(spent, dtype=np.float64) / 1e6


class CudaTimer:
    """A timer whose events the device records in its own order, before and after the kernels of a call.

    Parameters
    ----------
    device
        The CUDA device that runs the calls.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._events: list[tuple[Any, Any]] = []

    def run(self, target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a call."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.current_stream(self._device)
        start.record(stream)
        result = target(*args, **kwargs)
        end.record(stream)
        self._events.append((start, end))
        return result

    def milliseconds(self) -> Floats:
        """Return the times of the calls since the last time that it was asked."""
        torch.cuda.synchronize(self._device)
        events, self._events = self._events, []
        return np.array([start.elapsed_time(end) for start, end in events], dtype=np.float64)


def timer_of(device: Any, clock: str) -> OperatorTimer:
    """Return the timer for a device; the clock means something to the CPU only."""
    if torch.device(device).type == "cuda":
        return CudaTimer(torch.device(device))
    return CpuTimer(time.thread_time_ns if clock == THREAD else time.perf_counter_ns)


def empty_call(timer: OperatorTimer) -> float:
    """Return the time in ms that a call of an operator takes which does nothing: the median of some.

    It is what a call from Python adds to a time; torch itself calls the operators of a backward pass.
    """
    tensor = torch.zeros(1)
    for _ in range(EMPTY_CALLS):
        timer.run(torch.ops.aten.detach.default, (tensor,), {})
    return float(np.median(timer.milliseconds()))
