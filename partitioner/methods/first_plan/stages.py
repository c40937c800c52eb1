"""The user's limits on stages, as rules for intervals of a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.pipeline import UNLIMITED, Pipeline
from partitioner.problem.problem import Problem
from partitioner.problem.tasks import Tasks
from partitioner.workload.graph import Bools
from partitioner.workload.in_flight import samples_in_flight


@dataclass(frozen=True, eq=False)
class Pins:
    """Entries at `n` places of a line; each has another place that it refers to, and a cost.

    Parameters
    ----------
    start
        Shape (n + 1,): the entries at place v have the numbers ``start[v]`` to ``start[v + 1] - 1``.
    other
        Shape (entries,): the place that each refers to.
    cost
        Shape (entries,): the cost of each.
    """

    start: Ints
    other: Ints
    cost: Floats

    def sums(self, begin: int, end: int, before: bool) -> Floats:
        """Return the summed cost of entries from `begin` up to each place, shape (end - begin,).

        Only those count that refer to a place before `begin`, or, if `before` is False, to one from it on.
        """
        these = slice(self.start[begin], self.start[end])
        chosen = (self.other[these] < begin) == before
        at = np.repeat(np.arange(end - begin), np.diff(self.start[begin : end + 1]))
        return np.asarray(np.cumsum(np.bincount(at, chosen * self.cost[these], end - begin)))


@dataclass(frozen=True, eq=False)
class Line:
    """A sequence of `n` items that is to be cut into intervals for devices of K classes.

    Parameters
    ----------
    order
        Shape (n,): the item at each place.
    elapsed
        Shape (K, n + 1): summed time of the items before each place.
    held
        Shape (n + 1,): summed memory of the items before each place.
    barred
        Shape (K, n + 1): the first place, from each one on, whose item the class may not run; n if there is
        none.
    count, memory, transfer_factor
        Shape (K,): devices of each class, memory of a device, and the time of a transfer of cost 1.
    overlapped
        Whether transfers run at the same time as the processing, so that a load is the larger of both.
    touching
        The pins of all nets; each refers to the net's previous pin, or to -1 if it is the first.
    ending
        The last pin of each net, which refers to the net's first pin.
    """

    order: Ints
    elapsed: Floats
    held: Floats
    barred: Ints
    count: Ints
    memory: Floats
    transfer_factor: Floats
    overlapped: bool
    touching: Pins
    ending: Pins

    @property
    def n(self) -> int:
        """How many items there are."""
        return len(self.order)

    def least(self) -> float:
        """Return a lower bound on the largest load: the heaviest item, or the work shared by all devices."""
        each = np.diff(self.elapsed)[self.count > 0].min(axis=0, initial=np.inf)
        shared = float(each.sum()) / max(1, int(self.count.sum()))
        return max(float(each.max(initial=0.0)), shared)

    def loads(self, k: int, begin: int, end: int) -> Floats:
        """Return the load of a device of class `k` from `begin` up to each place, shape (end - begin,)."""
        busy: Floats = self.elapsed[k, begin + 1 : end + 1] - self.elapsed[k, begin]
        if not self.transfer_factor[k]:
            return busy
        cut = self.touching.sums(begin, end, before=True) - self.ending.sums(begin, end, before=False)
        cost = self.transfer_factor[k] * cut
        return np.asarray(np.maximum(busy, cost) if self.overlapped else busy + cost)


def line_of(problem: Problem, order: Ints) -> Line:
    """Return the line of a problem's supernodes in a given topological order."""
    pins = problem.nets.pins
    touching, ending = visits(np.argsort(order)[pins.items], pins.owners(), problem.n, problem.nets.cost)
    overlapped = problem.communication == "overlapped"
    devices = problem.count, problem.memory, problem.transfer_factor
    return _line(problem.work()[:, order], problem.size[order], order, devices, overlapped, touching, ending)


def visits(at: Ints, owner: Ints, n: int, cost: Floats) -> tuple[Pins, Pins]:
    """Return the pins of sets, each referring to the previous pin; and each set's last pin, to its first.

    Parameters
    ----------
    at, owner
        Shape (pins,): the place and the set of each pin.
    n
        How many places there are.
    cost
        Shape (sets,): the cost of each set.
    """
    by_owner = np.lexsort((at, owner))
    owner, at = owner[by_owner], at[by_owner]
    ends = np.flatnonzero(np.diff(owner, append=-1))
    begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    before = np.concatenate(([-1], at[:-1]))[: len(at)]
    before[begins] = -1
    return pins_at(at, before, cost[owner], n), pins_at(at[ends], at[begins], cost[owner[ends]], n)


def line_of_tasks(tasks: Tasks, kinds: list[Ints]) -> Line:
    """Return the line of the groups of tasks in the order of their first tasks, without transfers.

    Parameters
    ----------
    tasks
        The tasks.
    kinds
        The devices of each class; a task takes the same time on all devices of a class.
    """
    groups = len(tasks.group_size)
    _, first = np.unique(tasks.group, return_index=True)
    order = np.argsort(first, kind="stable")
    one = [int(devices[0]) for devices in kinds]
    time = np.array([np.bincount(tasks.group, tasks.time[d], groups) for d in one])
    nothing = pins_at(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), groups)
    counts = np.array([len(devices) for devices in kinds], dtype=np.int64)
    devices = counts, tasks.limit[one], np.zeros(len(one))
    return _line(time[:, order], tasks.group_size[order], order, devices, False, nothing, nothing)


def _line(
    work: Floats,
    size: Floats,
    order: Ints,
    devices: tuple[Ints, Floats, Floats],
    overlapped: bool,
    touching: Pins,
    ending: Pins,
) -> Line:
    n = len(order)
    refused = np.pad(~np.isfinite(work), ((0, 0), (0, 1)), constant_values=True)
    places = np.where(refused, np.arange(n + 1), n)
    barred = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
    time = np.where(np.isfinite(work), work, 0.0)
    elapsed = np.pad(np.cumsum(time, axis=1), ((0, 0), (1, 0)))
    held = np.pad(np.cumsum(size), (1, 0))
    return Line(order, elapsed, held, barred, *devices, overlapped, touching, ending)


def pins_at(at: Ints, other: Ints, cost: Floats, n: int) -> Pins:
    """Return entries sorted by the place `at` which each is, see :class:`Pins`."""
    by_place = np.argsort(at, kind="stable")
    start = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(at, minlength=n), out=start[1:])
    return Pins(start, other[by_place], cost[by_place])


FEWER = 0.7  # the next number of stages to try, as a fraction of the last one


class StageRules:
    """A check of which intervals of a line of supernodes can be stages.

    Parameters
    ----------
    problem
        A problem with a pipeline.
    order
        Shape (n,): the supernodes in the order of the line.
    """

    def __init__(self, problem: Problem, pipeline: Pipeline, order: Ints) -> None:
        self.pipeline, self.memory = pipeline, problem.memory
        divided = pipeline.divided
        size = problem.size + divided if len(divided) else problem.size  # each stage has one copy
        self.size = _before(size[order])
        self.parameters = _before(pipeline.parameters[order])
        self.activations = _before(pipeline.activations[order])
        self.workspace = pipeline.workspace[order]
        self.nodes = _before(pipeline.nodes[order].astype(np.float64))
        self.pinned = [pipeline.pinned.row(v).tolist() for v in order.tolist()]
        place = np.argsort(order)
        self.layers, self.pins = _distinct(pipeline.layers, place), _distinct(pipeline.pinned, place)

    def allow(self, k: int, begin: int, end: int, behind: int, taken: set[tuple[int, int]]) -> Bools:
        """Return whether the items from `begin` up to each place can be a stage, shape (end - begin,).

        Parameters
        ----------
        k, begin, end
            The kind of device, and the widest interval to check.
        behind
            The largest number of stages that can follow.
        taken
            The devices, by kind and index, that earlier stages are pinned to.
        """
        limits = self.pipeline.limits
        allowed = self._fits(k, begin, end, behind)
        if limits.nodes != (1, UNLIMITED):
            nodes = self.nodes[begin + 1 : end + 1] - self.nodes[begin]
            allowed &= (limits.nodes[0] <= nodes) & (nodes <= limits.nodes[1])
        if limits.layers != (0, UNLIMITED):
            layers = self.layers.sums(begin, end, before=True)
            allowed &= (limits.layers[0] <= layers) & (layers <= limits.layers[1])
        if len(self.pins.other):
            barred = [any((k, i) in taken for i in self.pinned[v]) for v in range(begin, end)]
            allowed &= (self.pins.sums(begin, end, before=True) <= 1) & ~np.logical_or.accumulate(barred)
        return allowed

    def devices(self, k: int, begin: int, end: int) -> set[tuple[int, int]]:
        """Return the devices, by kind and index, that items of an interval are pinned to."""
        return {(k, i) for v in range(begin, end) for i in self.pinned[v]} if len(self.pins.other) else set()

    def _fits(self, k: int, begin: int, end: int, behind: int) -> Bools:
        pipeline = self.pipeline
        need = self.size[begin + 1 : end + 1] - self.size[begin]
        if pipeline.schedule is not None:
            kept = samples_in_flight(pipeline.schedule, behind, 1, pipeline.microbatches)
            need = need + kept.weights * (self.parameters[begin + 1 : end + 1] - self.parameters[begin])
            need += kept.activations * (self.activations[begin + 1 : end + 1] - self.activations[begin])
            need += np.maximum.accumulate(self.workspace[begin:end])
        return np.asarray(need <= self.memory[k])


def _before(values: Floats) -> Floats:
    """Return the sum of the values before each place, shape (n + 1,)."""
    return np.pad(np.cumsum(values), (1, 0))


def _distinct(rows: Rows, place: Ints) -> Pins:
    """Return pins of cost 1 that count the distinct items of the rows at consecutive places."""
    items = np.asarray(rows.items)
    return visits(place[rows.owners()], items, len(place), np.ones(int(items.max(initial=-1)) + 1))[0]


def stage_counts(problem: Problem, devices: int) -> Sequence[int]:
    """Return the numbers of stages to try: the one demanded; else all devices, then fewer and fewer."""
    if problem.limits.stages or problem.limits.all_devices:
        return [problem.limits.stages or devices]
    counts = [min(devices, problem.n)]
    while counts[-1] > 1:
        counts.append(int(counts[-1] * FEWER))
    return counts
