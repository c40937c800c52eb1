"""HiGHS, called through OR-Tools."""

from __future__ import annotations

import re

from ortools.math_opt.python import mathopt

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.backends.mathopt import solve
from partitioner.methods.solvers.program import Program

_ROW = re.compile(r"^ ?\w? +\d+ +\d+ +\d+ +[\d.]+% +(?P<bound>[-\d.e+]+) ")


def solve_highs(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with HiGHS on one core."""
    return solve(program, limits, report, mathopt.SolverType.HIGHS, bound_in)


def bound_in(line: str) -> float | None:
    """Return the dual bound in a line of HiGHS's log; None if the line states none.

    Examples
    --------
    >>> bound_in(" L       0       0         0   0.00%   0.9958      0.9959     0.00%   9   4   124  0.8s")
    0.9958
    >>> bound_in("Presolving model")
    """
    match = _ROW.match(line)
    return float(match["bound"]) if match else None
