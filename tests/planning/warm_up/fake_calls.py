"""Answers of a worker process that compiles nothing."""

from __future__ import annotations

import time

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell


def compiled_two(number: int, limits: SolverLimits, tell: Tell) -> Answer:
    """As if each call compiled two kernels."""
    return Answer("optimal", (2, "/cache/numba"))


def fails(number: int, limits: SolverLimits, tell: Tell) -> Answer:
    """As if a call failed."""
    raise ValueError(f"call {number} is broken")


def never_ends(number: int, limits: SolverLimits, tell: Tell) -> Answer:
    """As if a kernel took an hour to compile."""
    time.sleep(3600)
    return Answer("optimal", (0, ""))
