"""Packing of groups into devices by CP-SAT, for when memory is too scarce for simple rules."""

from __future__ import annotations

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits
from partitioner.methods.solvers.backends.guard import guarded
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

UNITS = 2.0**40  # units of memory in the largest finite limit
EFFORT = 5.0  # limit in CP-SAT's deterministic seconds
LARGEST = 200_000  # limit on the pairs of a group and a device in the model


def packed(tasks: Tasks, settings: Settings) -> tuple[Ints | None, bool]:
    """Return the device of every group, shape (groups,), or None, and whether it is proven that none fits.

    Sizes are rounded down to whole units: if CP-SAT finds no packing, there is none; a packing that it finds
    is checked with the true sizes.
    """
    pairs = int(tasks.group_allowed.sum())
    if settings.expired or pairs > LARGEST:
        return None, False
    answer = guarded(lambda: _solved(tasks, SolverLimits(settings.seconds_left, seed=settings.seed)))
    if answer.values is None:
        return None, answer.stop == "infeasible"
    return (answer.values, False) if tasks.hold(answer.values[tasks.group]) else (None, False)


def _solved(tasks: Tasks, limits: SolverLimits) -> Answer:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    size, room = _whole(tasks)
    on = [
        {d: model.new_bool_var("") for d in np.flatnonzero(tasks.group_allowed[:, g]).tolist()}
        for g in range(len(size))
    ]
    for may in on:
        model.add_exactly_one(may.values())
    for d in np.flatnonzero(np.isfinite(tasks.limit)).tolist():
        model.add(sum(int(size[g]) * may[d] for g, may in enumerate(on) if d in may) <= int(room[d]))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = limits.seed % 2**31
    solver.parameters.max_deterministic_time = EFFORT
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = limits.seconds
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer("infeasible" if status == cp_model.INFEASIBLE else "time_limit")
    return Answer(
        "optimal", np.array([next(d for d, x in may.items() if solver.boolean_value(x)) for may in on])
    )


def _whole(tasks: Tasks) -> tuple[Floats, Floats]:
    """Return sizes of groups rounded down and limits rounded up; `UNITS` is the largest finite limit."""
    finite = tasks.limit[np.isfinite(tasks.limit)]
    unit = max(float(finite.max(initial=0.0)), 1e-300) / UNITS
    size = np.minimum(np.floor(tasks.group_size / unit), 2 * UNITS)  # larger than every limit
    return size, np.ceil(np.where(np.isfinite(tasks.limit), tasks.limit, 0.0) / unit)
