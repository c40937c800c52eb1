"""The user's limits on stages, as rules for intervals of a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.first_plan.line import Pins, visits
from partitioner.problem.arrays import Floats, Ints, Rows
from partitioner.problem.pipeline import UNLIMITED, Pipeline
from partitioner.problem.problem import Problem
from partitioner.workload.graph import Bools
from partitioner.workload.in_flight import samples_in_flight

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
        self.size = _before(problem.size[order])
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
