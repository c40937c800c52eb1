"""Gurobi, for machines with gurobipy and a licence."""

from __future__ import annotations

import gurobipy as gp
import numpy as np
from gurobipy import GRB

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.program import Program

TOO_LARGE = 10010
FEASIBILITY = 1e-9  # less than the distance from the cutoff to the best known value, about 4e-7 of it
FREE_SIZE = 2000  # variables, and constraints, that the licence inside the package covers
_STOPS = {
    GRB.OPTIMAL: "optimal",
    GRB.INFEASIBLE: "infeasible",
    GRB.INF_OR_UNBD: "infeasible",  # no objective is below zero
    GRB.TIME_LIMIT: "time_limit",
    GRB.NODE_LIMIT: "time_limit",
    GRB.INTERRUPTED: "interrupted",
}
_WORDS = {getattr(GRB.Status, name): name for name in dir(GRB.Status) if name.isupper()}


def largest() -> int | None:
    """Return how many rows and columns the installed licence covers; None without a limit, 0 without one."""
    try:
        with _environment() as environment, gp.Model(env=environment) as model:
            model.addMVar(FREE_SIZE + 1)
            model.optimize()
    except gp.GurobiError as error:
        return FREE_SIZE if error.errno == TOO_LARGE else 0
    return None


def solve_gurobi(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with Gurobi on ``limits.threads`` cores.

    Raises
    ------
    gurobipy.GurobiError
        Without a licence for a program of this size.
    """
    with _environment() as environment, gp.Model(env=environment) as model:
        variables = _fill(model, program)
        model.Params.MIPGap = limits.gap
        model.Params.MIPGapAbs = 0.0
        model.Params.FeasibilityTol = FEASIBILITY
        model.Params.IntFeasTol = FEASIBILITY
        model.Params.Threads = limits.threads
        model.Params.Seed = limits.seed % 2_000_000_000
        if limits.seconds is not None:
            model.Params.TimeLimit = limits.seconds
        if limits.effort is not None:
            model.Params.NodeLimit = limits.effort
        model.optimize(_teller(variables, report))
        stop = _STOPS.get(model.Status, "failed")
        values = np.asarray(variables.X) if model.SolCount else None
        bound = np.inf if stop == "infeasible" else float(model.ObjBound)
        return Answer(stop, values, bound, _WORDS.get(model.Status, str(model.Status)))


def _environment() -> gp.Env:
    environment = gp.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.start()
    return environment


def _fill(model: gp.Model, program: Program) -> gp.MVar:
    kind = np.where(program.integer, GRB.BINARY, GRB.CONTINUOUS)
    variables = model.addMVar(program.columns, program.lower, program.upper, program.cost, kind)
    listed = variables.tolist()
    for r in range(program.rows):
        chosen = slice(program.entry.start[r], program.entry.start[r + 1])
        columns = [listed[c] for c in program.entry.items[chosen].tolist()]
        row = gp.LinExpr(program.factor[chosen].tolist(), columns)
        low, high = program.row_lower[r], program.row_upper[r]
        if low == high:
            model.addLConstr(row, GRB.EQUAL, low)
            continue
        if np.isfinite(high):
            model.addLConstr(row, GRB.LESS_EQUAL, high)
        if np.isfinite(low):
            model.addLConstr(row, GRB.GREATER_EQUAL, low)
    return variables


def _teller(variables: gp.MVar, report: Tell):  # type: ignore[no-untyped-def]
    listed = variables.tolist()

    def listen(model: gp.Model, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            report(np.array(model.cbGetSolution(listed)), model.cbGet(GRB.Callback.MIPSOL_OBJBND))
        elif where == GRB.Callback.MIP:
            report(None, model.cbGet(GRB.Callback.MIP_OBJBND))

    return listen
