"""Measures a captured graph (memory in one round, times in several), or reads its profile from a file."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from partitioner.base.errors import OptionError, shown
from partitioner.base.interruption import Interruption
from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.profiling.allocations import allocations
from partitioner.integrations.torch.profiling.cache import (
    OperatorProfile,
    load_profile,
    profile_file,
    save_profile,
)
from partitioner.integrations.torch.profiling.options import CPU, ELAPSED, ProfileOptions
from partitioner.integrations.torch.profiling.rounds import RoundsStopped, shared_by_form, timed_rounds
from partitioner.integrations.torch.profiling.runnable import RunnableGraph
from partitioner.integrations.torch.profiling.timers import timer_of
from partitioner.integrations.torch.verification.foreign_load import CpuClock
from partitioner.methods.method import Progress

Report = Callable[[Progress], None]


def profile_of(
    seen: Seen,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: ProfileOptions,
    interruption: Interruption,
    on_progress: Report | None,
) -> OperatorProfile | None:
    """Return what was measured of a captured graph; None if the run was stopped before a round was complete.

    A profile that was stopped is not written to the cache.
    """
    program = RunnableGraph(seen, args, kwargs, options.device, options.accumulate)
    file = None
    if options.cache is not None:
        file = profile_file(options.cache, seen.graph, options.device, options.manner)
        known = load_profile(file, program.names)
        if known is not None:
            return known
    found = _measured(program, options, interruption, on_progress)
    if file is not None and found is not None and not interruption.asked:
        save_profile(file, found)
    return found


def _measured(
    program: RunnableGraph, options: ProfileOptions, interruption: Interruption, on_progress: Report | None
) -> OperatorProfile | None:
    started = time.perf_counter()

    def report(phase: str, done: int, total: int, value: float) -> None:
        if on_progress is not None:
            on_progress(Progress(phase, done, total, value, 0.0, time.perf_counter() - started))

    def check() -> None:
        if interruption.asked:
            raise RoundsStopped

    report("memory", 0, 0, float("inf"))
    try:
        memory = allocations(program, options.device, check)
    except RoundsStopped:
        return None
    timer = timer_of(options.device, options.clock)
    limits = options.warm_up, options.tolerance, options.time_limit
    with companions(program, options.beside):
        begin, own = CpuClock.now(), time.process_time()
        load = (lambda: begin.foreign(time.process_time() - own)) if _is_shared(options) else None
        timed = timed_rounds(program, timer, *limits, check, report, load)
    if timed is None:
        return None
    times = shared_by_form(timed.times, program.forms)
    operators = {name: (times[name], *memory[name]) for name in program.names}
    return OperatorProfile(operators, timed.rounds, timed.stable, timed.foreign)


def _is_shared(options: ProfileOptions) -> bool:
    """Whether the clock runs on while other programs do, none of which are part of the profile."""
    return options.device == CPU and options.clock == ELAPSED and not options.beside


# Processes that run a program again and again while another one measures it.


class Left(Exception):  # noqa: N818 - not an error
    """The process that measures is gone."""


@contextmanager
def companions(program: RunnableGraph, count: int) -> Iterator[None]:
    """Let several processes of one thread each run a program until the context ends.

    They are forks, so that they need not load torch again; they share the processors, the caches and the
    memory with what is measured meanwhile.
    """
    if not count:
        yield
        return
    context: Any = multiprocessing.get_context("fork")
    parent = os.getpid()
    running = [context.Process(target=_run, args=(program, parent), daemon=True) for _ in range(count)]
    try:
        for process in running:
            process.start()
        yield
    finally:
        for process in running:
            if process.pid is not None:
                process.kill()
                process.join()


def _run(program: RunnableGraph, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)

    def check() -> None:
        if os.getppid() != parent:
            raise Left

    try:
        while True:
            program.run(_plain, check)
    except Left:
        pass


def _plain(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return target(*args, **kwargs)


# The device that a model is measured on: it must be there, and so must the model and its arguments.


RULE = "move the model and its arguments to one device, and name it"


def require_device(device: object) -> None:
    """Raise if a device cannot be measured here.

    Raises
    ------
    OptionError
        If it is neither the CPU nor a CUDA device of this machine.

    Examples
    --------
    >>> require_device("cpu")
    """
    try:
        kind = torch.device(device) if isinstance(device, str) else None
    except RuntimeError:
        kind = None
    if kind is None or kind.type not in ("cpu", "cuda"):
        raise OptionError(f"device = {shown(device)}: must be 'cpu' or 'cuda', or 'cuda:' and a number")
    count = torch.cuda.device_count() if kind.type == "cuda" else 1
    if (kind.index or 0) >= count:
        raise OptionError(f"device = {shown(device)}: torch finds {count} CUDA devices on this machine")


def require_there(device: str, model: Any, arguments: Any) -> None:
    """Raise if a tensor of a model or of the arguments of a call is not on the device.

    Raises
    ------
    OptionError
        Naming the tensor and where it is.
    """
    asked = torch.device(device)
    for name, tensor in _tensors(model, arguments):
        here = tensor.device
        if here.type != asked.type or (here.index or 0) != (asked.index or 0):
            raise OptionError(f"device = {device!r}: {name} is on the device '{here}': {RULE}")


def _tensors(model: Any, arguments: Any) -> Iterator[tuple[str, Any]]:
    yield from ((f"parameter {name}", each) for name, each in model.named_parameters())
    yield from ((f"buffer {name}", each) for name, each in model.named_buffers())
    for number, leaf in enumerate(torch.utils._pytree.tree_leaves(arguments), 1):
        if isinstance(leaf, torch.Tensor):
            yield f"argument {number}", leaf
