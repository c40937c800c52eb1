"""The solution of a linear program, which can be interrupted."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.solvers.backends.apart import apart
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.methods.solvers.backends.guard import guarded
from partitioner.methods.solvers.backends.highs import solve_highs
from partitioner.methods.solvers.messages import Job
from partitioner.methods.solvers.program import Program
from partitioner.methods.solvers.worker_pool import WorkerPool
from partitioner.problem.arrays import Floats

SMALL = 5000  # columns up to which a solve takes less time than the start of a process
LOOK = 0.1  # seconds between two readings of the clock


def optimum(program: Program, settings: Settings) -> tuple[float, Floats] | None:
    """Return the value and the columns of an optimum; None if the run must end before, or HiGHS fails.

    A large program is solved in a process of its own, which is killed if the run must end, because neither
    Ctrl-C nor a time limit interrupts a solver in this process. If there are several optima, HiGHS returns
    the same one in every run.
    """
    if settings.expired:
        return None
    answer = _here(program, settings) if program.columns <= SMALL else _elsewhere(program, settings)
    if answer is None or answer.stop != "optimal":
        return None
    return float(program.cost @ answer.values), np.asarray(answer.values)


def _here(program: Program, settings: Settings) -> Answer:
    return apart(
        lambda: guarded(
            lambda: solve_highs(program, SolverLimits(settings.seconds_left), lambda values, bound: None)
        )
    )


def _elsewhere(program: Program, settings: Settings) -> Answer | None:
    """Return the answer of a worker process; None if the run must end before it comes."""
    with closing(WorkerPool()) as pool:
        pool.start().submit(Job(BACKENDS["highs"].place, program, SolverLimits()))
        while not settings.expired:
            event = pool.next(LOOK)
            if event is not None and isinstance(event.message, Answer):
                return event.message
    return None
