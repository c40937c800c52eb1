"""What goes to a worker process and what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.methods.ip.backends.backend import Limits
from partitioner.methods.ip.program import Program
from partitioner.preprocess.problem import Floats


@dataclass(frozen=True, eq=False)
class Job:
    """A program for a solver, given as ``"module:function"``."""

    solver: str
    program: Program
    limits: Limits


@dataclass(frozen=True, eq=False)
class News:
    """What a solver tells on its way: a better solution, a bound, or both."""

    values: Floats | None
    bound: float
