"""What a solver is given, what it returns, and what is known of it beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from partitioner.methods.solvers.program import Program

STOPS = ("optimal", "gap", "infeasible", "time_limit", "interrupted", "failed")


@dataclass(frozen=True)
class SolverLimits:
    """When a solver may stop.

    Parameters
    ----------
    seconds
        Time limit; None for none.
    gap
        Stop once the solution is within this fraction of the optimum.
    seed
        Seed of everything random.
    threads
        Cores to use, where the solver can choose.
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
    """How a solve ended, on two axes: why it stopped, and what is held.

    Parameters
    ----------
    stop
        One of :data:`STOPS`.
    values
        The best solution, of a program its variables, shape (columns,); None if there is none.
    bound
        No solution has a smaller objective; infinity if there is no solution at all.
    native
        The solver's own words.
    """

    stop: str
    values: Any = None
    bound: float = -np.inf
    native: str = ""


Tell = Callable[[Any, float], None]


class Solver(Protocol):
    """Solves one program; tells of better solutions and bounds on the way if it can."""

    def __call__(self, program: Program, limits: SolverLimits, report: Tell) -> Answer:
        """Solve `program` within `limits`; errors of the solver may be raised."""
        ...


@dataclass(frozen=True)
class Capability:
    """What is known of a backend on this machine.

    Parameters
    ----------
    name
        As in ``solve(backend=...)``.
    place
        Module and function of its :class:`Solver`.
    packages
        What must be importable.
    remedy
        What to install where it is missing.
    streams
        Whether it reports solutions and bounds before it ends. One that does not loses them when its
        process is stopped.
    parallel
        Whether one solve can use several cores.
    licence
        Module and function that say how many rows and columns the licence at hand covers (None: no
        limit); empty where none is needed.
    """

    name: str
    place: str
    packages: tuple[str, ...]
    remedy: str
    streams: bool = False
    parallel: bool = False
    licence: str = ""
