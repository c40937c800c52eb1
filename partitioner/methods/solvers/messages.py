"""What goes to a worker process and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partitioner.methods.solvers.backends.backend import SolverLimits


@dataclass(frozen=True, eq=False)
class Job:
    """A program, or what else it takes, for a solver given as ``"module:function"``."""

    solver: str
    payload: Any
    limits: SolverLimits


@dataclass(frozen=True, eq=False)
class News:
    """What a solver tells on its way: a better solution, a bound, or both."""

    values: Any
    bound: float
