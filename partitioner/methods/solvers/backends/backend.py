"""The types of a backend: the limits, messages and answer of a solve, and the record of a solver."""

from __future__ import annotations

import _thread
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from partitioner.methods.solvers.program import Program


def guarded(solve: Callable[[], Answer]) -> Answer:
    """Return the answer of a solver; ``"failed"``, with the error's message, if it raises an error.

    Examples
    --------
    >>> guarded(lambda: Answer("optimal", [1.0, 0 / 0]))
    Answer(stop='failed', values=None, bound=-inf, native='ZeroDivisionError: division by zero')
    """
    try:
        return solve()
    except Exception:  # solvers raise all kinds of errors; OR-Tools, for example, raises AttributeError
        return Answer("failed", native=traceback.format_exc().strip().splitlines()[-1])


T = TypeVar("T")


def apart(call: Callable[[], T]) -> T:
    """Return what `call` returns, or raise what it raises; call it in another thread if this is the main one.

    An exception that a signal handler raises in the main thread is raised once the call has ended. Threads
    of :mod:`threading` are not used, because they are kept in weak sets, whose callbacks could also lose an
    exception.

    Examples
    --------
    >>> apart(lambda: 7)
    7
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: list[T] = []
    errors: list[BaseException] = []
    over: list[bool] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            over.append(True)
            ended.release()

    _thread.start_new_thread(run, ())
    try:
        ended.acquire()
    except BaseException:
        if not over:  # else it is this thread that holds the lock
            ended.acquire()
        raise
    if errors:
        raise errors[0]
    return results[0]


_RUNNING: list[subprocess.Popen[str]] = []


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program whose standard output is read; it has ended when the ``with`` block has."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        _RUNNING.append(process)
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            _RUNNING.remove(process)


def end_all() -> None:
    """End all programs that run, and take their exit codes, so that none stays in the table of processes."""
    for process in tuple(_RUNNING):
        process.kill()
        process.wait()


READY = "ready"  # the first message of a worker
STOPS = ("optimal", "gap", "infeasible", "time_limit", "interrupted", "failed")


@dataclass(frozen=True)
class SolverLimits:
    """The limits of one solve.

    Parameters
    ----------
    seconds
        Time limit in seconds; None for no limit.
    gap
        Stop once the solution is within this fraction of the optimum.
    seed
        Seed of the solver's random numbers.
    threads
        Cores to use, if the solver can use several.
    effort
        Nodes of the search tree after which to stop (CP-SAT: hundredths of its deterministic seconds); None
        for no limit. It does not depend on the machine.
    """

    seconds: float | None = None
    gap: float = 0.0
    seed: int = 0
    threads: int = 1
    effort: int | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """How a solve ended: why it stopped, and what it found.

    Parameters
    ----------
    stop
        One of :data:`STOPS`.
    values
        The best solution; of a program the values of its variables, shape (columns,). None if none was found.
    bound
        A lower bound on the objective of every solution; infinity if there is no solution.
    native
        The status, or the error, as the solver words it.
    """

    stop: str
    values: Any = None
    bound: float = -np.inf
    native: str = ""


Tell = Callable[[Any, float], None]


class Solver(Protocol):
    """A function that solves one program and may report better solutions and bounds while it runs."""

    def __call__(self, program: Program, limits: SolverLimits, report: Tell) -> Answer:
        """Solve `program` within `limits`; errors of the solver may be raised."""
        ...


@dataclass(frozen=True)
class Capability:
    """The record of a backend.

    Parameters
    ----------
    name
        As in ``solve(backend=...)``.
    place
        Module and function of its :class:`Solver`.
    packages
        The packages that must be importable.
    remedy
        The command, or advice, that installs what is missing.
    streams
        Whether it reports solutions and bounds before it ends. One that does not loses them when its
        process is stopped.
    parallel
        Whether one solve can use several cores.
    licence
        Module and function that return how many rows and columns the installed licence covers (None: no
        limit); empty if no licence is needed.
    """

    name: str
    place: str
    packages: tuple[str, ...]
    remedy: str
    streams: bool = False
    parallel: bool = False
    licence: str = ""


@dataclass(frozen=True, eq=False)
class Job:
    """A solve: the solver as ``"module:function"``, its program or other payload, and its limits."""

    solver: str
    payload: Any
    limits: SolverLimits


@dataclass(frozen=True, eq=False)
class News:
    """A message of a solver that still runs: a better solution, a bound, or both."""

    values: Any
    bound: float
