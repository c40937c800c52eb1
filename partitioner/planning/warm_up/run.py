"""The worker processes that compile kernels, and what is known at the end."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass

from partitioner.base.argument_types import require_callable
from partitioner.base.errors import PartitionerError
from partitioner.methods.method import COMPILING, Progress
from partitioner.methods.solvers.backends.backend import Answer, Job, SolverLimits
from partitioner.methods.solvers.worker_pool import Event, Worker, WorkerPool
from partitioner.planning.options import check_values, cores_for
from partitioner.planning.warm_up.calls import small_calls

PLACE = "partitioner.planning.warm_up.worker:run_call"
PROCESSES = 2  # more of them would wait for the longest calls
TICK = 0.5  # seconds between two reports


@dataclass(frozen=True)
class WarmUp:
    """The result of :func:`warm_up`.

    Parameters
    ----------
    kernels
        How many kernels were compiled; one counts once for every type of its arguments.
    seconds
        How long that took.
    folder
        The folder below which compiled kernels are kept.
    """

    kernels: int
    seconds: float
    folder: str

    def summary(self) -> str:
        """Return the result in a line.

        Examples
        --------
        >>> WarmUp(2, 3.21, "/home/me/.cache/numba").summary()
        'compiled 2 kernels in 3.2 s; they are kept below /home/me/.cache/numba'
        >>> WarmUp(0, 3.21, "/home/me/.cache/numba").summary()
        'all kernels were compiled before, checked in 3.2 s; they are kept below /home/me/.cache/numba'
        """
        number = f"compiled {self.kernels:,} kernel{'' if self.kernels == 1 else 's'} in"
        done = number if self.kernels else "all kernels were compiled before, checked in"
        return f"{done} {self.seconds:.1f} s; they are kept below {self.folder}"

    def to_json(self) -> str:
        """Return the result as the text of a JSON object."""
        return json.dumps(asdict(self), indent=1)


def warm_up(*, workers: int | None = None, on_progress: Callable[[Progress], None] | None = None) -> WarmUp:
    """Compile all kernels into numba's cache, so that no later run on this machine has to.

    The processes that compile have ended when the function returns or raises.

    Parameters
    ----------
    workers
        Compile in this many processes; None: in two, or one if the machine has one core.
    on_progress
        Called about twice a second with the progress so far, in small calls that are made.

    Returns
    -------
    WarmUp
        How many kernels were compiled, how long that took, and where they are kept.

    Raises
    ------
    PartitionerError
        If no folder for compiled kernels can be written, or a process that compiles ends early.
    """
    check_values(workers=workers)
    require_callable(on_progress=on_progress)
    began = time.perf_counter()
    cores = cores_for(workers)[0] if workers else min(PROCESSES, cores_for(None)[0])
    with closing(WorkerPool()) as pool:
        run = _WarmUpRun(pool, len(small_calls()), began, on_progress)
        run.make(cores)
    return WarmUp(run.kernels, time.perf_counter() - began, os.path.commonpath(run.folders))


class _WarmUpRun:
    """The calls that are still to be made, and what those before them compiled."""

    def __init__(
        self, pool: WorkerPool, count: int, began: float, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self.pool, self.count, self.began, self.on_progress = pool, count, began, on_progress
        self.waiting = iter(range(count))
        self.done = self.kernels = 0
        self.folders: set[str] = set()

    def make(self, processes: int) -> None:
        """Make all calls; a process is given the next one as soon as it has made one."""
        for _ in range(min(processes, self.count)):
            self._give(self.pool.start())
        while self.done < self.count:
            event = self.pool.next(TICK)
            if event is not None:
                self._take(event)
            if self.on_progress is not None:
                seconds = time.perf_counter() - self.began
                self.on_progress(Progress(COMPILING, self.done, self.count, math.inf, 0.0, seconds))

    def _give(self, worker: Worker) -> None:
        number = next(self.waiting, None)
        if number is not None:
            worker.submit(Job(PLACE, number, SolverLimits()))

    def _take(self, event: Event) -> None:
        answer = event.message
        if not isinstance(answer, Answer) or answer.stop == "failed":
            raise PartitionerError(f"warm-up: {getattr(answer, 'native', answer)}")
        kernels, folder = answer.values
        self.kernels, self.done = self.kernels + kernels, self.done + 1
        self.folders.add(folder)
        self._give(event.worker)
