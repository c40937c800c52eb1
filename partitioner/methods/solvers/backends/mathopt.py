"""HiGHS and SCIP, called through MathOpt of OR-Tools: arrays become its model, its result an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.program import Program

_STOPS = {
    mathopt.TerminationReason.OPTIMAL: "optimal",
    mathopt.TerminationReason.INFEASIBLE: "infeasible",
    mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED: "infeasible",  # no objective is below zero
    mathopt.TerminationReason.FEASIBLE: "time_limit",
    mathopt.TerminationReason.NO_SOLUTION_FOUND: "time_limit",
}

_ROW = re.compile(r"^ ?\w? +\d+ +\d+ +\d+ +[\d.]+% +(?P<bound>[-\d.e+]+) ")  # of HiGHS's log
COLUMN = 14  # of the table in SCIP's log


def solve_highs(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with HiGHS on one core."""
    return solve(program, limits, report, mathopt.SolverType.HIGHS, highs_bound)


def solve_scip(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with SCIP on one core."""
    return solve(program, limits, report, mathopt.SolverType.GSCIP, scip_bound, streams=True)


def highs_bound(line: str) -> float | None:
    """Return the dual bound in a line of HiGHS's log; None if the line states none.

    Examples
    --------
    >>> highs_bound(" L       0       0         0   0.00%   0.9958      0.9959     0.00%   9   4   124  0.8s")
    0.9958
    >>> highs_bound("Presolving model")
    """
    match = _ROW.match(line)
    return float(match["bound"]) if match else None


def scip_bound(line: str) -> float | None:
    """Return the dual bound in a line of SCIP's log; None if the line states none.

    Examples
    --------
    >>> line = "0.4s| 1 | 0 |160 | - | 13M | 0 |11 |15 |15 | 0 | 0 | 8 | 0 | 9.95e-01 | -- | Inf | unknown"
    >>> scip_bound(line)
    0.995
    >>> scip_bound("presolving:")
    """
    cells = line.split("|")
    try:
        return float(cells[COLUMN])
    except (IndexError, ValueError):
        return None


def solve(
    program: Program,
    limits: SolverLimits,
    report: Tell,
    solver: mathopt.SolverType,
    bound_in: Callable[[str], float | None],
    streams: bool = False,
) -> Answer:
    """Solve a program with one of MathOpt's solvers.

    Parameters
    ----------
    program, limits, report
        As for every solver. The bounds that the log shows are reported.
    solver
        The solver.
    bound_in
        Function that returns the bound that a line of the log states, None if it states none.
    streams
        Whether the solver can report solutions before it ends.

    Raises
    ------
    RuntimeError
        If the solver reports an error.
    """
    parameters = mathopt.SolveParameters(
        time_limit=None if limits.seconds is None else timedelta(seconds=limits.seconds),
        relative_gap_tolerance=limits.gap,
        absolute_gap_tolerance=0.0,
        random_seed=limits.seed % 2**31,
        node_limit=limits.effort,
    )

    def listen(lines: Sequence[str]) -> None:
        for bound in filter(None, map(bound_in, lines)):
            report(None, bound)

    model = mathopt.Model.from_model_proto(model_of(program))
    variables = list(model.variables())

    def take(found: mathopt.CallbackData) -> mathopt.CallbackResult:
        if found.solution is not None:
            report(np.array([found.solution[each] for each in variables]), -np.inf)
        return mathopt.CallbackResult()

    events = {mathopt.Event.MIP_SOLUTION} if streams else set()
    result = mathopt.solve(
        model,
        solver,
        params=parameters,
        msg_cb=listen,
        callback_reg=mathopt.CallbackRegistration(events=events),
        cb=take if streams else None,
    )
    termination = result.termination
    stop = _STOPS.get(termination.reason, "failed")
    values = None
    if result.has_primal_feasible_solution():
        values = np.array(list(result.variable_values(variables)))
    bound = np.inf if stop == "infeasible" else termination.objective_bounds.dual_bound
    native = " ".join(filter(None, (termination.reason.name, termination.detail)))
    return Answer(stop, values, float(bound), native)


def model_of(program: Program) -> model_pb2.ModelProto:
    """Return the program as MathOpt's model; the ids of columns and rows are their numbers."""
    model = model_pb2.ModelProto()
    columns, rows = range(program.columns), range(program.rows)
    model.variables.ids.extend(columns)
    model.variables.lower_bounds.extend(program.lower.tolist())
    model.variables.upper_bounds.extend(program.upper.tolist())
    model.variables.integers.extend(program.integer.tolist())
    priced = np.flatnonzero(program.cost)
    model.objective.linear_coefficients.ids.extend(priced.tolist())
    model.objective.linear_coefficients.values.extend(program.cost[priced].tolist())
    model.linear_constraints.ids.extend(rows)
    model.linear_constraints.lower_bounds.extend(program.row_lower.tolist())
    model.linear_constraints.upper_bounds.extend(program.row_upper.tolist())
    matrix = model.linear_constraint_matrix
    matrix.row_ids.extend(program.entry.owners().tolist())
    matrix.column_ids.extend(program.entry.items.tolist())
    matrix.coefficients.extend(program.factor.tolist())
    return model
