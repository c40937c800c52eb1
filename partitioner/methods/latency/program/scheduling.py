"""CP-SAT on the problem of latency itself, beside the integer program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from partitioner.methods.ip.backends.backend import Limits
from partitioner.methods.latency.layout import Layout
from partitioner.methods.latency.program.schedule_model import Model, model_of
from partitioner.preprocess.problem import Ints, Problem

_STOPS = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}
Tell = Callable[[Layout | None, float], None]


@dataclass(frozen=True, eq=False)
class ScheduleAnswer:
    """How a solve ended.

    Parameters
    ----------
    stop
        ``"optimal"``, ``"infeasible"``, ``"time_limit"`` or ``"failed"``.
    layout
        The best layout; None if there is none.
    value
        Its latency, with all times rounded down.
    bound
        No layout takes less; infinity if none is within the cutoff.
    native
        The solver's own words.
    """

    stop: str
    layout: Layout | None
    value: float
    bound: float
    native: str


def solve_schedule(
    problem: Problem, cutoff: float, bound: float, start: Layout | None, limits: Limits, tell: Tell
) -> ScheduleAnswer:
    """Find a layout with a latency of at most `cutoff`, or show that there is none.

    Parameters
    ----------
    problem
        A problem of latency.
    cutoff
        Largest value of interest, infinity where nothing is known.
    bound
        No layout has a smaller value.
    start
        A layout to begin with.
    limits
        As for other solvers.
    tell
        Called with every layout found and with every better bound.
    """
    model = model_of(problem, cutoff, bound)
    if start is not None:
        _hint(model, model.seats.of(problem, start))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = max(1, limits.threads)
    solver.parameters.random_seed = limits.seed % 2**31
    solver.parameters.relative_gap_limit = limits.gap
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = limits.seconds
    solver.best_bound_callback = lambda found: tell(None, found / model.scale)
    status = solver.solve(model.cp, _Listener(model, tell))
    lowest = np.inf if status == cp_model.INFEASIBLE else solver.best_objective_bound / model.scale
    layout, value = None, np.inf
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        layout, value = _layout(model, solver.boolean_value), solver.objective_value / model.scale
    known = status in (cp_model.FEASIBLE, cp_model.UNKNOWN)
    stop = _STOPS.get(status, "time_limit" if known else "failed")
    return ScheduleAnswer(stop, layout, value, max(lowest, bound), solver.status_name(status))


def _hint(model: Model, seat: Ints) -> None:
    for row, chosen in zip(model.x, seat.tolist(), strict=True):
        for s, x in row.items():
            model.cp.add_hint(x, s == chosen)


def _layout(model: Model, chosen: Callable[[cp_model.IntVar], bool]) -> Layout:
    seat = [next(s for s, x in row.items() if chosen(x)) for row in model.x]
    return model.seats.layout(np.array(seat, dtype=np.int64))


class _Listener(cp_model.CpSolverSolutionCallback):
    def __init__(self, model: Model, tell: Tell) -> None:
        super().__init__()
        self._model, self._tell = model, tell

    def on_solution_callback(self) -> None:
        self._tell(_layout(self._model, self.boolean_value), -np.inf)
