"""The solve of a latency problem by CP-SAT with a model of its own, not the integer program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.program.schedule_model import ScheduleModel, model_of
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.backends.cpsat import EFFORT_PER_SECOND
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import SampleProblem

_STOPS = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}


@dataclass(frozen=True, eq=False)
class ScheduleTask:
    """The task to find a layout with a latency of at most `cutoff`, or to prove that there is none.

    Parameters
    ----------
    problem
        A problem for latency.
    cutoff
        Largest value to look for; infinity if no layout is known yet.
    bound
        A lower bound on the latency of all layouts.
    start
        A layout to start from.
    """

    problem: SampleProblem
    cutoff: float
    bound: float = 0.0
    start: SubgraphLayout | None = None
    unit: float = 1.0

    @property
    def payload(self) -> ScheduleTask:
        """The task itself, which the solver is given."""
        return self

    def solution(self, values: SubgraphLayout) -> SubgraphLayout:
        """Return the layout that the solver found."""
        return values


def solve_schedule(task: ScheduleTask, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a task; layouts are reported and returned in place of the values of a program."""
    model = model_of(task.problem, task.cutoff, task.bound)
    if task.start is not None:
        _hint(model, model.seats.of(task.problem, task.start))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = max(1, limits.threads)
    solver.parameters.random_seed = limits.seed % 2**31
    solver.parameters.relative_gap_limit = limits.gap
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = limits.seconds
    if limits.effort is not None:
        solver.parameters.max_deterministic_time = limits.effort / EFFORT_PER_SECOND
    solver.best_bound_callback = lambda found: report(None, found / model.scale)
    status = solver.solve(model.cp, _ScheduleListener(model, report))
    lowest = np.inf if status == cp_model.INFEASIBLE else solver.best_objective_bound / model.scale
    held = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    layout = _layout(model, solver.boolean_value) if held else None
    known = status in (cp_model.FEASIBLE, cp_model.UNKNOWN)
    stop = _STOPS.get(status, "time_limit" if known else "failed")
    return Answer(stop, layout, max(lowest, task.bound), solver.status_name(status))


def _hint(model: ScheduleModel, seat: Ints) -> None:
    for row, chosen in zip(model.x, seat.tolist(), strict=True):
        for s, x in row.items():
            model.cp.add_hint(x, s == chosen)


def _layout(model: ScheduleModel, chosen: Callable[[cp_model.IntVar], bool]) -> SubgraphLayout:
    seat = [next(s for s, x in row.items() if chosen(x)) for row in model.x]
    return model.seats.layout(np.array(seat, dtype=np.int64))


class _ScheduleListener(cp_model.CpSolverSolutionCallback):
    def __init__(self, model: ScheduleModel, report: Tell) -> None:
        super().__init__()
        self._model, self._tell = model, report

    def on_solution_callback(self) -> None:
        self._tell(_layout(self._model, self.boolean_value), -np.inf)
