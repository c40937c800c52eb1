"""CP-SAT: times become integers, rounded so that its bound holds for the program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.program import Program
from partitioner.problem.arrays import Floats

PRECISION = 1e-7  # of a row's sum, after rounding all its terms
LARGEST = 2.0**58
EFFORT_PER_SECOND = 100.0
_STOPS = {
    cp_model.OPTIMAL: "optimal",
    cp_model.INFEASIBLE: "infeasible",
    cp_model.FEASIBLE: "time_limit",
    cp_model.UNKNOWN: "time_limit",
}


def solve_cpsat(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with CP-SAT on one core; with two, its own portfolio does not work on the bound.

    Every implied variable is treated as an integer; the others count times in units of one over the scale.
    Rounding only ever loosens a row: a solution of the program, its times rounded up, also solves the integer
    model. So the program's optimum is at least the model's bound minus one unit for each variable of the
    objective.
    """
    scale = _scale(program)
    model, variables = _fill(program, scale)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    solver.parameters.random_seed = limits.seed % 2**31
    solver.parameters.relative_gap_limit = limits.gap
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = limits.seconds
    if limits.effort is not None:
        solver.parameters.max_deterministic_time = limits.effort / EFFORT_PER_SECOND
    slack = float((program.cost > 0).sum())

    def true_bound(bound: float) -> float:
        return (bound - slack) / scale

    solver.best_bound_callback = lambda bound: report(None, true_bound(bound))
    listener = _SolutionListener(variables, lambda found: report(_unscaled(found, program, scale), -np.inf))
    status = solver.solve(model, listener)
    stop = _STOPS.get(status, "failed")
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = _unscaled(np.array(solver.values(variables), dtype=np.float64), program, scale)
        return Answer(stop, found, true_bound(solver.best_objective_bound), solver.status_name(status))
    bound = np.inf if stop == "infeasible" else true_bound(solver.best_objective_bound)
    return Answer(stop, None, bound, solver.status_name(status))


class _SolutionListener(cp_model.CpSolverSolutionCallback):
    def __init__(self, variables: list[cp_model.IntVar], take: Callable[[Floats], None]) -> None:
        super().__init__()
        self._variables, self._take = variables, take

    def on_solution_callback(self) -> None:
        self._take(np.array([self.value(each) for each in self._variables], dtype=np.float64))


def _unscaled(values: Floats, program: Program, scale: float) -> Floats:
    return np.where(program.implied, values, values / scale)


def _scale(program: Program) -> float:
    """Return the integer units in a time of 1: enough for `PRECISION`, few enough for 64-bit sums."""
    sums = np.bincount(program.entry.owners(), np.abs(program.factor), program.rows)
    longest = np.diff(program.entry.start).max(initial=1)
    return float(np.floor(min(longest / PRECISION, LARGEST / max(sums.max(initial=1.0), 1.0))))


def _fill(program: Program, scale: float) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    model = cp_model.CpModel()
    sums = np.bincount(program.entry.owners(), np.abs(program.factor), program.rows)
    top = np.ceil(np.minimum(program.upper, sums.max(initial=1.0)) * scale)
    variables = [
        model.new_bool_var("") if whole else model.new_int_var(int(np.floor(low * scale)), int(high), "")
        for whole, low, high in zip(program.implied, program.lower, top, strict=True)
    ]
    for r in range(program.rows):
        chosen = slice(program.entry.start[r], program.entry.start[r + 1])
        column, factor = program.entry.items[chosen], program.factor[chosen]
        listed = [variables[c] for c in column.tolist()]
        timed = ~program.implied[column]
        for sign, side in ((1.0, program.row_upper[r]), (-1.0, -program.row_lower[r])):
            if side < np.inf:
                factors, room = _rounded(sign * factor, side, timed, scale)
                model.add(cp_model.LinearExpr.weighted_sum(listed, factors) <= room)
    model.minimize(sum(variables[c] for c in np.flatnonzero(program.cost).tolist()))
    return model, variables


def _rounded(factor: Floats, side: float, timed: NDArray[np.bool_], scale: float) -> tuple[list[int], int]:
    """Return the row ``factor @ x <= side`` in integers, loosened; `timed` says which x count units of time.

    A time that is rounded up adds at most its factor to the row. Rows of integers are not changed.
    """
    whole = not timed.any() and bool((factor == np.round(factor)).all()) and side == round(side)
    unit = 1.0 if whole else scale
    factors = np.where(timed, factor, np.floor(factor * unit))
    room = np.ceil(side * unit) + np.maximum(factor[timed], 0.0).sum()
    return factors.astype(np.int64).tolist(), int(room)
