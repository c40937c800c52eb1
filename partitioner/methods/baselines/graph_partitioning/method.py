"""Methods made of graph partitioners: devices get parts of equal work, which may break memory limits.

The input of a graph partitioner: an undirected graph with integers as weights.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.methods.placers.bound import makespan_bound
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.plan_value import timed
from partitioner.methods.placers.ranks import mean_transfer, ordered, upward_rank
from partitioner.methods.places import device_kinds, parts_at
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.problem import Nets, Problem
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes, OperatorProblem
from partitioner.workload.graph import Bools

SHOWN = 200  # last characters of an error output that a note shows


class Ended(Exception):  # noqa: N818 - an end, not an error of the user's
    """Raised when a partitioner ends without parts, with the stop reason and a note for the user."""

    def __init__(self, stop_reason: str, note: str) -> None:
        super().__init__(note)
        self.stop_reason, self.note = stop_reason, note


def run(name: str, words: Sequence[str], settings: Settings) -> None:
    """Run a program without a shell until it ends or the deadline has passed.

    Raises
    ------
    Ended
        If the program does not end in time, or fails.
    """
    left = settings.seconds_left
    try:
        if left is not None and left <= 0:
            raise subprocess.TimeoutExpired(words, left)
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        raise Ended("time_limit", f"{name} did not end within the time limit") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-SHOWN:]
        raise Ended(settings.stop_reason, f"{name} ended with code {done.returncode}: {said}")


TOTAL = 2**28  # sum of the weights, far below the largest number of 32 bits


class Weighted(NamedTuple):
    """An undirected graph; every edge is in the rows of both its ends.

    Parameters
    ----------
    weight
        Shape (n,): the work of each vertex.
    start, neighbour, cost
        The neighbours of vertex v are ``neighbour[start[v]:start[v + 1]]``, and the costs of the edges to
        them, each at least 1, the same slice of `cost`.
    """

    weight: Ints
    start: Ints
    neighbour: Ints
    cost: Ints

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return len(self.weight)

    def renumbered(self, order: Ints) -> Weighted:
        """Return the same graph; vertex i of the new one is ``order[i]`` of this one."""
        owner = np.repeat(np.arange(self.n), np.diff(self.start))
        place = np.argsort(order)
        return _collected(self.weight[order], place[owner], place[self.neighbour], self.cost)


def weighted(work: Floats, ends: Ints, cost: Floats) -> Weighted:
    """Return a graph with the weights scaled to integers and the edges between the same vertices added up.

    Parameters
    ----------
    work
        Shape (n,): the work of each vertex.
    ends
        Shape (m, 2): the vertices that each edge joins; loops are left out.
    cost
        Shape (m,): the cost of each edge.

    Examples
    --------
    >>> graph = weighted(np.array([1.0, 3.0]), np.array([[0, 1], [1, 0]]), np.array([0.5, 0.5]))
    >>> graph.weight.tolist() == [TOTAL // 4, TOTAL // 4 * 3], graph.neighbour.tolist()
    (True, [1, 0])
    """
    joins = (ends[:, 0] != ends[:, 1]) & (cost > 0)
    low, high = ends[joins].min(axis=1), ends[joins].max(axis=1)
    pairs, number = np.unique(np.column_stack((low, high)), axis=0, return_inverse=True)
    total = np.bincount(number.ravel(), cost[joins], len(pairs)).astype(np.float64)
    whole = np.maximum(_whole(total), 1)
    owner, other = np.concatenate((pairs, pairs[:, ::-1])).reshape(-1, 2).T
    return _collected(_whole(work), owner, other, np.tile(whole, 2))


def of_nets(work: Floats, nets: Nets) -> Weighted:
    """Return the graph of supernodes; a net is a star around the supernode that makes the tensor.

    As in the paper's code, a tensor counts once for each reader, whatever devices the readers are on.
    """
    source = np.repeat(nets.source, np.diff(nets.pins.start))
    ends = np.column_stack((source, nets.pins.items))
    return weighted(work, ends, np.repeat(nets.cost, np.diff(nets.pins.start)))


def of_tasks(work: Floats, tasks: Tasks) -> Weighted:
    """Return the graph of groups of tasks; a tensor counts once for each group that reads it.

    Parameters
    ----------
    work
        Shape (groups,): the work of each group.
    tasks
        The tasks; the cost of an edge is the mean transfer time over all pairs of devices.
    """
    maker, reader = tasks.group[tasks.before.owners()], tasks.group[tasks.before.items]
    once = np.unique(np.column_stack((tasks.before_tensor, reader, maker)), axis=0)
    return weighted(work, once[:, 1:], mean_transfer(tasks)[once[:, 0]])


def _whole(weights: Floats) -> Ints:
    """Return integers in proportion to the weights; all 1 if all weights are 0."""
    total = weights.sum()
    if total <= 0:
        return np.ones(len(weights), dtype=np.int64)
    return np.asarray(np.rint(weights / total * TOTAL), dtype=np.int64)


def _collected(weight: Ints, owner: Ints, other: Ints, cost: Ints) -> Weighted:
    """Return the graph of edges from owners to others, with sorted rows."""
    order = np.lexsort((other, owner))
    rows = rows_of(owner[order], other[order], len(weight))
    return Weighted(weight, rows.start, rows.items, cost[order])


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
