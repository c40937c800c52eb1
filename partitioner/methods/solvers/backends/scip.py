"""SCIP, called through OR-Tools."""

from __future__ import annotations

from ortools.math_opt.python import mathopt

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.backends.mathopt import solve
from partitioner.methods.solvers.program import Program

COLUMN = 14  # of the table in SCIP's log


def solve_scip(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with SCIP on one core."""
    return solve(program, limits, report, mathopt.SolverType.GSCIP, bound_in, streams=True)


def bound_in(line: str) -> float | None:
    """Return the dual bound in a line of SCIP's log; None if the line states none.

    Examples
    --------
    >>> bound_in("0.4s| 1 | 0 |160 | - | 13M | 0 |11 |15 |15 | 0 | 0 | 8 | 0 | 9.95e-01 | -- | Inf | unknown")
    0.995
    >>> bound_in("presolving:")
    """
    cells = line.split("|")
    try:
        return float(cells[COLUMN])
    except (IndexError, ValueError):
        return None
