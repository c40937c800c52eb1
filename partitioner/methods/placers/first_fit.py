"""Placement by memory alone, for when the rules of a placer find none: first fit by decreasing size.

Packing of groups into devices by CP-SAT, for when memory is too scarce for simple rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.ranks import ordered, upward_rank
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, guarded
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools

UNITS = 2.0**40  # units of memory in the largest finite limit


@dataclass(frozen=True)
class PackingEffort:
    """How long a packing by a solver may take.

    At half and at twice each value the same packings of 40 random graphs on up to five devices are found.

    Parameters
    ----------
    seconds, pairs
        The limit in CP-SAT's deterministic seconds, and on the pairs of a group and a device in its model.
    """

    seconds: float = 5.0
    pairs: int = 200_000


EFFORT = PackingEffort()


def packed(tasks: Tasks, settings: Settings) -> tuple[Ints | None, bool]:
    """Return the device of every group, shape (groups,), or None, and whether it is proven that none fits.

    Sizes are rounded down to whole units: if CP-SAT finds no packing, there is none; a packing that it finds
    is checked with the true sizes.
    """
    pairs = int(tasks.group_allowed.sum())
    if settings.expired or pairs > EFFORT.pairs:
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
    solver.parameters.max_deterministic_time = EFFORT.seconds
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


FALLBACK = (
    "the rules of the placer found no placement within the memory: the groups were packed into the devices "
    "by their sizes instead, and run in the order of the upward rank"
)


def place_within_memory(tasks: Tasks, settings: Settings) -> tuple[Found | None, bool]:
    """Return a placement that fits, or None, and whether it is proven that there is none.

    First fit is tried before a solver packs the groups.
    """
    found = place_first_fit(tasks, settings)
    if found is not None:
        return replace(found, notes=(FALLBACK,)), False
    home, impossible = packed(tasks, settings)
    if home is None:
        return None, impossible
    return Found(home[tasks.group], ordered(tasks, upward_rank(tasks)), notes=(FALLBACK,)), False


def place_first_fit(tasks: Tasks, settings: Settings) -> Found | None:
    """Return a placement by size, whose tasks run by upward rank; None if every rule leaves a group over.

    The rules are first fit and best fit, by decreasing size and then with the groups first that may run on
    the fewest devices. `settings` are not used.
    """
    few = tasks.group_allowed.sum(axis=0)
    by_size = np.argsort(-tasks.group_size, kind="stable")
    by_choice = by_size[np.argsort(few[by_size], kind="stable")]
    for order in (by_size, by_choice):
        for tightest in (False, True):
            home = _packed(tasks.group_size, tasks.group_allowed, tasks.limit, order, tightest)
            if home is not None and tasks.hold(home[tasks.group]):
                return Found(home[tasks.group], ordered(tasks, upward_rank(tasks)))
    return None


def _packed(size: Floats, allowed: Bools, limit: Floats, order: Ints, tightest: bool) -> Ints | None:
    """Return the device of each group, shape (groups,): the first, or the fullest, that it fits on."""
    home, room = np.zeros(len(size), dtype=np.int64), limit.copy()
    for group in order.tolist():
        fitting = np.flatnonzero(allowed[:, group] & (size[group] <= room))
        if not len(fitting):
            return None
        home[group] = fitting[np.argmin(room[fitting])] if tightest else fitting[0]
        room[home[group]] -= size[group]
    return home
