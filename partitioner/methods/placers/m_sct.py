"""m-SCT: favourite children under memory limits (Baechi, 2020).

The solution of a linear program, which can be interrupted.

Favourite children: the linear program of small communication times, and its rounding (Baechi, 2020).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.placers.around import around
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.method import as_method
from partitioner.methods.placers.queues import place_by_events
from partitioner.methods.placers.ranks import largest_time, largest_transfer
from partitioner.methods.placers.task_arrays import NOWHERE
from partitioner.methods.solvers.backends.backend import Answer, Job, SolverLimits, apart, guarded
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.methods.solvers.backends.mathopt import solve_highs
from partitioner.methods.solvers.program import Builder, Program
from partitioner.methods.solvers.worker_pool import WorkerPool
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

SMALL = 5000  # columns up to which a solve takes less time than the start of a process
LOOK = 0.1  # seconds between two readings of the clock


def optimum(program: Program, settings: Settings) -> tuple[float, Floats] | None:
    """Return the value and the columns of an optimum; None if the run must end before, or HiGHS fails.

    A large program is solved in a process of its own, which is killed if the run must end, because neither
    Ctrl-C nor a time limit interrupts a solver in this process. If there are several optima, HiGHS returns
    the same one in every run.
    """
    if settings.expired:
        return None
    answer = _here(program, settings) if program.columns <= SMALL else _elsewhere(program, settings)
    if answer is None or answer.stop != "optimal":
        return None
    return float(program.cost @ answer.values), np.asarray(answer.values)


def _here(program: Program, settings: Settings) -> Answer:
    return apart(
        lambda: guarded(
            lambda: solve_highs(program, SolverLimits(settings.seconds_left), lambda values, bound: None)
        )
    )


def _elsewhere(program: Program, settings: Settings) -> Answer | None:
    """Return the answer of a worker process; None if the run must end before it comes."""
    with closing(WorkerPool()) as pool:
        pool.start().submit(Job(BACKENDS["highs"].place, program, SolverLimits()))
        while not settings.expired:
            event = pool.next(LOOK)
            if event is not None and isinstance(event.message, Answer):
                return event.message
    return None


ROUNDING = 1e-7  # error of the solver's values
HUGE = 1e5  # a transfer counts with at most this many times the time of all tasks


@dataclass(frozen=True, eq=False)
class Favourites:
    """The favourite child of each task.

    Parameters
    ----------
    child
        Shape (n,): the favourite child, ``NOWHERE`` for a task without one.
    notes, statistics
        As in :class:`partitioner.methods.placers.found.Found`.
    """

    child: Ints
    notes: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TaskPairs:
    """The pairs of a producer and a consumer, in the order of the producers and their edges.

    Parameters
    ----------
    tail, head
        Shape (m,): producer and consumer.
    cost
        Shape (m,): the time of all tensors of the pair between two devices.
    """

    tail: Ints
    head: Ints
    cost: Floats


def favourite_children(tasks: Tasks, settings: Settings) -> Favourites:
    """Return the rounded solution of the linear program; no favourites if the run ends before it is solved.

    The value of the program is no bound on the makespan: it assumes a device for every task, so that some
    transfers must be paid that a single device would avoid.
    """
    began, settings = time.perf_counter(), settings.within(settings.patience)
    links = links_of(tasks)
    unit = unit_of(tasks, links)
    answer = optimum(relaxation(tasks, links, unit), settings)
    spent = time.perf_counter() - began
    if answer is None:
        why = "was not solved in time" if settings.expired else "could not be solved"
        note = f"m-SCT's linear program {why}: no task has a favourite child"
        return Favourites(np.full(tasks.n, NOWHERE), (note,), {"lp_seconds": spent})
    value, x = answer
    child = rounded(links, x[: len(links.tail)], tasks.n, settings.placing.sct_threshold)
    chosen = float((child != NOWHERE).sum())
    return Favourites(child, (), {"lp_value": value * unit, "lp_seconds": spent, "favourites": chosen})


def links_of(tasks: Tasks) -> TaskPairs:
    """Return all pairs of tasks; each tensor counts with its largest time over the pairs of devices."""
    pair = tasks.after.owners() * tasks.n + tasks.after.items
    _, first, number = np.unique(pair, return_index=True, return_inverse=True)
    cost: Floats = np.zeros(len(first))
    np.add.at(cost, number, largest_transfer(tasks)[tasks.after_tensor])
    order = np.argsort(first)
    return TaskPairs(tasks.after.owners()[first[order]], tasks.after.items[first[order]], cost[order])


def unit_of(tasks: Tasks, links: TaskPairs) -> float:
    """Return the time, a power of two, that is 1 in the program, because solvers have absolute tolerances."""
    longest = largest_time(tasks).max(initial=0.0) or links.cost.max(initial=0.0)
    return float(2.0 ** np.ceil(np.log2(longest))) if longest > 0 else 1.0


def relaxation(tasks: Tasks, links: TaskPairs, unit: float = 1.0) -> Program:
    """Return the program for the least end of all tasks with enough devices and without memory limits.

    Its columns are x of each link (0: the head is the favourite child of the tail, and no transfer is
    needed), the start of each task, and the end of all. On links without cost x is 1, so that the tail's
    favourite child can be another task. A task takes its largest time over the devices. Times are counted in
    `unit`.
    """
    builder, length, cost = Builder(), largest_time(tasks) / unit, links.cost / unit
    if length.any():
        cost = np.minimum(cost, HUGE * length.sum())
    x = builder.variables(len(links.tail), 1.0, lower=links.cost == 0)
    start = builder.variables(tasks.n, np.inf)
    end = builder.variables(1, np.inf)
    rows = builder.new_rows(len(x), length[links.tail], np.inf)
    builder.add(rows, start[links.head], 1.0)
    builder.add(rows, start[links.tail], -1.0)
    builder.add(rows, x, -cost)
    for side in (links.tail, links.head):
        _all_but_one(builder, x, side)
    rows = builder.new_rows(tasks.n, length, np.inf)
    builder.add(rows, end, 1.0)
    builder.add(rows, start, -1.0)
    return builder.program(end)


def rounded(links: TaskPairs, x: Floats, n: int, threshold: float) -> Ints:
    """Return the favourite child of each task, shape (n,): links whose x is at most the threshold, repaired.

    In the order of the links a later favourite replaces an earlier one of the same tail, and a later parent
    an earlier one of the same head, so that in the end each task has at most one favourite child and is the
    favourite child of at most one task. (The released code keeps the parent of a replaced child, and can
    remove a parent's new favourite because of its old one.)

    Examples
    --------
    >>> links = TaskPairs(np.array([0, 0, 1]), np.array([2, 3, 2]), np.ones(3))
    >>> rounded(links, np.array([0.0, 1.0, 0.05]), 4, 0.1).tolist()
    [-1, 2, -1, -1]
    """
    child, parent = [NOWHERE] * n, [NOWHERE] * n
    for e in np.flatnonzero(x <= threshold + ROUNDING).tolist():
        u, v = int(links.tail[e]), int(links.head[e])
        if child[u] != NOWHERE:
            parent[child[u]] = NOWHERE
        if parent[v] != NOWHERE:
            child[parent[v]] = NOWHERE
        child[u], parent[v] = v, u
    return np.array(child, dtype=np.int64)


def _all_but_one(builder: Builder, x: Ints, side: Ints) -> None:
    """Add rows: of the links that share this end all but one have x = 1, as a sum."""
    degree = np.bincount(side)
    several = np.flatnonzero(degree > 1)
    row = np.zeros(len(degree), dtype=np.int64)
    row[several] = builder.new_rows(len(several), degree[several] - 1.0, np.inf)
    shared = degree[side] > 1
    builder.add(row[side[shared]], x[shared], 1.0)


def place_m_sct(tasks: Tasks, settings: Settings) -> Found | None:
    """Place tasks as m-ETF does, but let a device wait for the favourite child of the task that it ran last.

    It waits while that child is ready and could start on no other device earlier; meanwhile it runs only
    tasks that could start now on every device they fit on. Favourite children come from a linear program, see
    :func:`partitioner.methods.placers.m_sct.favourite_children`.
    """
    return around(tasks, settings, _placed)


def _placed(tasks: Tasks, settings: Settings) -> Found | None:
    favourites = favourite_children(tasks, settings)
    found = place_by_events(tasks, favourites.child, settings.placing.reserve_memory, settings)
    if found is None:
        return None
    return replace(found, notes=favourites.notes, statistics=favourites.statistics)


solve_m_sct = as_method(place_m_sct)
