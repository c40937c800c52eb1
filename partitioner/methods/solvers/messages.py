"""The messages to a worker process, and those that it sends back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partitioner.methods.solvers.backends.backend import SolverLimits


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
