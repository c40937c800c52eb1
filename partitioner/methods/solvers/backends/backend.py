"""The types of a backend: the limits and the answer of a solve, and the record of a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from partitioner.methods.solvers.program import Program

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
