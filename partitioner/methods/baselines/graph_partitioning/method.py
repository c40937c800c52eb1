"""Methods made of graph partitioners: devices get parts of equal work, which may break memory limits.

The input of a graph partitioner: an undirected graph with integers as weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.baselines.graph_partitioning.weighted import Ended, Weighted, of_nets, of_tasks
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.methods.placers.bound import makespan_bound
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.plan_value import timed
from partitioner.methods.placers.ranks import ordered, upward_rank
from partitioner.methods.places import device_kinds, parts_at
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import OperatorNodes, OperatorProblem
from partitioner.workload.graph import Bools

Partition = Callable[[Weighted, int, Settings], Ints]  # graph, number of parts -> part of each vertex, (n,)


@dataclass(frozen=True)
class Partitioner:
    """A method made of a graph partitioner.

    It ignores memory and the direction of edges: every accelerator (device that pays for transfers, or any
    device if none does) gets a part of equal work, where work is the mean time over these devices (paper,
    Section 6, Scotch). A vertex that may not run on the device of its part goes to the fastest one for it.
    """

    partition: Partition
    version: Callable[[], str]

    def __call__(self, problem: OperatorProblem, settings: Settings) -> Outcome:
        """Return the outcome of the parts; without parts, and with a note, if they break a memory limit."""
        makespan = isinstance(problem, OperatorNodes)
        bound = makespan_bound(problem) if isinstance(problem, OperatorNodes) else relax(problem).bound
        if np.isinf(bound):
            return no_split(problem)
        version = self.version()
        try:
            place = (self.group_places if makespan else self.places)(problem, settings)
        except Ended as end:
            return Outcome(
                problem, None, np.inf, bound, end.stop_reason, notes=(end.note,), native_status=version
            )
        status = f"{version}, seed {settings.seed}, imbalance {settings.placing.imbalance:g}"
        if makespan:
            return _timed(problem, settings, place, bound, status)
        return _loaded(problem, settings, place, bound, status)

    def places(self, problem: Problem, settings: Settings) -> Ints:
        """Return the device of every supernode, numbered kind by kind, shape (n,).

        Raises
        ------
        BackendUnavailable
            If the partitioner is not installed.
        Ended
            If it ends without parts.
        """
        kind = device_kinds(problem)
        work = problem.work()[kind]
        return self._spread(work, problem.pays[kind], lambda mean: of_nets(mean, problem.nets), settings)

    def group_places(self, problem: OperatorProblem, settings: Settings) -> Ints:
        """Return the device of every task, shape (n,), see :meth:`places`."""
        tasks = problem.tasks
        work = np.zeros((len(tasks.limit), len(tasks.group_size)))
        np.add.at(work.T, tasks.group, tasks.time.T)
        place = self._spread(work, problem.pays[tasks.kind], lambda mean: of_tasks(mean, tasks), settings)
        return place[tasks.group]

    def _spread(
        self, work: Floats, pays: Bools, graph: Callable[[Floats], Weighted], settings: Settings
    ) -> Ints:
        """Return the device of every vertex, shape (n,); `work` has shape (devices, n)."""
        used = np.flatnonzero(pays if pays.any() else np.ones(len(pays), dtype=bool))
        may = np.isfinite(work[used])
        mean = np.where(may, work[used], 0.0).sum(axis=0) / np.maximum(may.sum(axis=0), 1)
        place = used[self._parts(graph(mean), len(used), settings)]
        misplaced = np.flatnonzero(np.isinf(work[place, np.arange(len(place))]))
        place[misplaced] = work[:, misplaced].argmin(axis=0)
        return place

    def _parts(self, graph: Weighted, parts: int, settings: Settings) -> Ints:
        if parts == 1 or graph.n <= parts:
            return np.arange(graph.n) % parts
        return self.partition(graph, parts, settings)


def _loaded(problem: OperatorProblem, settings: Settings, place: Ints, bound: float, status: str) -> Outcome:
    """Return the outcome of a placement by its loads."""
    parts = parts_at(problem, place)
    value = value_of(problem, parts)
    full = _too_full(problem.size, problem.memory[device_kinds(problem)], place, value)
    if full:
        return Outcome(problem, None, np.inf, bound, "heuristic", notes=(full,), native_status=status)
    stop = settings.ended(bound, value)
    return Outcome(problem, parts, value, min(bound, value), stop, native_status=status)


def _timed(problem: OperatorProblem, settings: Settings, place: Ints, bound: float, status: str) -> Outcome:
    """Return the outcome of a placement in which every device runs its tasks by upward rank."""
    tasks = problem.tasks
    outcome = timed(problem, settings, Found(place, ordered(tasks, upward_rank(tasks))), bound)
    full = _too_full(tasks.size, tasks.limit, place, outcome.value)
    if full:
        return Outcome(problem, None, np.inf, bound, "heuristic", notes=(full,), native_status=status)
    return replace(outcome, native_status=status)


def _too_full(size: Floats, limit: Floats, place: Ints, value: float) -> str:
    """Return a note on the memory limits that a placement breaks; empty if it breaks none."""
    held = np.bincount(place, size, len(limit))
    over = np.flatnonzero(held > limit)
    if not len(over):
        return ""
    worst = over[np.argmax(held[over] - limit[over])]
    return (
        f"its parts break {len(over)} of {len(limit)} limits of memory: {held[worst]:g} on a device that has "
        f"{limit[worst]:g}; their value would be {value:.6g}"
    )
