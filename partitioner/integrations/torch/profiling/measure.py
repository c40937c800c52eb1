"""Measures a captured graph (memory in one round, times in several), or reads its profile from a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from partitioner.base.interruption import Interruption
from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.profiling.allocations import allocations
from partitioner.integrations.torch.profiling.cache import (
    OperatorProfile,
    load_profile,
    profile_file,
    save_profile,
)
from partitioner.integrations.torch.profiling.companions import companions
from partitioner.integrations.torch.profiling.options import CPU, ELAPSED, ProfileOptions
from partitioner.integrations.torch.profiling.rounds import RoundsStopped, timed_rounds
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
    operators = {name: (timed.times[name], *memory[name]) for name in program.names}
    return OperatorProfile(operators, timed.rounds, timed.stable, timed.foreign)


def _is_shared(options: ProfileOptions) -> bool:
    """Whether the clock runs on while other programs do, none of which are part of the profile."""
    return options.device == CPU and options.clock == ELAPSED and not options.beside
