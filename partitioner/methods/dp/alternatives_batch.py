"""The least time of a batch with a choice among alternatives: the sum of all loads, and the largest again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.dp._alternatives_core import ChosenStage, stage_load, stage_of
from partitioner.methods.dp.alternatives_pairs import Pairs
from partitioner.methods.dp.alternatives_search import SLICE, mark_members, stage_members
from partitioner.methods.dp.alternatives_stages import ChoiceModel
from partitioner.methods.dp.batch_intervals import BatchIntervals, LoadInterval
from partitioner.methods.dp.lattice import Ints32, Lattice
from partitioner.methods.method import ROUNDING, OutOfTimeError, Settings
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def lay(  # type: ignore[no-untyped-def]
    lattice, pairs, choices, shapes, memory, threshold, place, first_ideal, end_ideal,
    total, before, by, loads,
):  # fmt: skip
    """Extend the states of some ideals by all stages with a load of at most `threshold`.

    Parameters
    ----------
    lattice, pairs, choices, shapes, memory
        The model, see :mod:`partitioner.methods.dp.alternatives_stages`.
    threshold
        Of every load.
    place
        Shape (D, copies behind): where the load of a stage of a shape is kept.
    first_ideal, end_ideal
        The ideals whose states are extended; those of smaller ideals are complete.
    total, before, by
        Shape (ideals, devices + 1, copies): the least sum of loads of a state, the ideal from which it is
        reached, and the shape of the stage between. With one number of copies these are not told apart.
    loads
        Shape (stages, places): the least loads that are known; NaN for others.
    """
    n, devices, behind = len(lattice.rank), total.shape[1] - 1, total.shape[2]
    inside, below = np.zeros((2, n), np.bool_)
    fixed = np.full(len(choices.start) - 1, -1)
    way = fixed.copy()
    none = np.empty(0, np.int64)
    for ideal in range(first_ideal, end_ideal):
        mark_members(ideal, lattice, below, True)
        for pair in range(pairs.start[ideal], pairs.start[ideal + 1]):
            target, members = pairs.to[pair], none
            for d in range(len(shapes.copies)):
                if pairs.least[pair, d] > threshold:
                    continue
                taken = shapes.degree[d] * shapes.copies[d]
                step = shapes.copies[d] if behind > 1 else 0
                for c in range(behind - step):
                    reached = False
                    for p in range(devices - taken + 1):
                        if total[ideal, p, c] < np.inf:
                            reached = True
                            break
                    if not reached:
                        continue
                    load = loads[pair, place[d, c]]
                    if np.isnan(load):
                        if not len(members):
                            members = stage_members(target, lattice, below, inside)
                        load = stage_load(
                            members, inside, d, shapes.in_flight[d, c], pairs.cut[pair], np.inf, choices,
                            shapes, memory, False, fixed, way,
                        )  # fmt: skip
                        loads[pair, place[d, c]] = load
                    if load > threshold:
                        break  # with more copies behind a copy holds no fewer samples
                    for p in range(devices - taken + 1):
                        sum_of_loads = total[ideal, p, c] + load
                        if sum_of_loads < total[target, p + taken, c + step]:
                            total[target, p + taken, c + step] = sum_of_loads
                            before[target, p + taken, c + step] = ideal
                            by[target, p + taken, c + step] = d
            if len(members):
                inside[:] = False
        mark_members(ideal, lattice, below, False)


BYTES_A_STATE, BYTES_A_LOAD = 16, 8
ANY = 1e200  # a threshold that no load exceeds


def batch_value(model: ChoiceModel, stages: Sequence[ChosenStage]) -> float:
    """Return the time of a batch: the sum of the loads, and the largest one for each further sample."""
    loads = [stage.load for stage in stages]
    return sum(loads) + (samples(model) - 1) * max(loads)


def samples(model: ChoiceModel) -> int:
    """Return how many samples a batch has."""
    assert model.problem.pipeline.microbatches is not None
    return model.problem.pipeline.microbatches


@dataclass(eq=False)
class BatchSearch:
    """The search for the stages with the least time for a batch among the ideals of a lattice.

    Parameters
    ----------
    model, lattice, pairs
        The problem, its ideals, and the stages between them, all turned.
    settings
        Limits of the run.
    bound
        A lower bound of the time; it rises.
    value, stages
        The best time known, and its stages from first to last.
    decided
        How many tables were filled.
    """

    model: ChoiceModel
    lattice: Lattice
    pairs: Pairs
    settings: Settings
    bound: float
    value: float
    stages: Sequence[ChosenStage]
    decided: int = 0
    place: Ints = field(init=False)
    loads: Floats = field(init=False)
    behind: int = field(init=False)

    def __post_init__(self) -> None:
        self.behind, self.place = places(self.model)
        self.loads = np.full((len(self.pairs.to), int(self.place.max()) + 1), np.nan)

    def narrow(self, least: float) -> bool:
        """Raise the bound and lower the value until they meet; return whether that was done in time.

        `least` is a lower bound of the largest load.
        """
        intervals = BatchIntervals(samples(self.model) - 1)
        intervals.add(least * (1 - ROUNDING), ANY, least, self.value)
        try:
            while intervals.open:
                self.bound = max(self.bound, min(intervals.open[0].bound, self.value))
                self._ask(intervals, intervals.next())
                self.settings.report_progress("limits", self.decided, 0, self.value, self.bound)
        except OutOfTimeError:
            return False
        self.bound = self.value
        return True

    def _ask(self, intervals: BatchIntervals, interval: LoadInterval) -> None:
        """Split an interval by the stages with the smallest sum of loads up to its upper end."""
        high = intervals.highest(interval, self.value)
        stages = self._least_sum(high)
        if not stages:
            return
        value = batch_value(self.model, stages)
        if value < self.value:
            self.value, self.stages = value, stages
        loads = [stage.load for stage in stages]
        rest = min(max(loads), high) * (1 - ROUNDING)
        intervals.split(interval, rest, sum(loads) * (1 - ROUNDING), self.value)

    def _least_sum(self, threshold: float) -> list[ChosenStage]:
        """Return the stages with the least sum of loads of at most `threshold`; none if there are none."""
        shape = self.lattice.size, self.model.devices + 1, self.behind
        total, before, by = np.full(shape, np.inf), np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        total[0, 0, 0] = 0.0
        model = self.model
        for first, end in self.settings.watched(pairwise(self._borders())):
            lay(
                self.lattice, self.pairs, model.choices, model.shapes, model.memory, threshold, self.place,
                first, end, total, before, by, self.loads,
            )  # fmt: skip
        self.decided += 1
        return [] if np.isinf(total[-1].min()) else self._stages(total, before, by)

    def _borders(self) -> list[int]:
        """Return the ideals at which a table looks whether the run should end, from 0 to their number."""
        done = self.pairs.start * self.pairs.least.shape[1] * self.behind
        marks = np.searchsorted(done, np.arange(0, done[-1], SLICE))
        return sorted({0, *marks.tolist(), self.lattice.size})

    def _stages(self, total: Floats, before: Ints32, by: Ints32) -> list[ChosenStage]:
        """Return the stages of the state of the full ideal with the least sum, from first to last."""
        shapes, found = self.model.shapes, list[tuple[Ints, int]]()
        ideal = self.lattice.size - 1
        p, c = np.unravel_index(int(total[-1].argmin()), total.shape[1:])
        while ideal:
            smaller, d = int(before[ideal, p, c]), int(by[ideal, p, c])
            p -= shapes.degree[d] * shapes.copies[d]
            c -= shapes.copies[d] if self.behind > 1 else 0
            found.append((self.lattice.difference(ideal, smaller)[::-1], d))
            ideal = smaller
        after = np.cumsum([shapes.copies[d] for _, d in reversed(found)])[::-1]
        return [
            stage_of(self.model, nodes, d, int(held - shapes.copies[d]), False)
            for (nodes, d), held in zip(found, after, strict=True)
        ]


def places(model: ChoiceModel) -> tuple[int, Ints]:
    """Return how many numbers of copies behind are told apart, and where the load for each of them is kept.

    The places have shape (D, numbers): one for each shape and number of samples that a copy holds.
    """
    held = model.shapes.in_flight
    behind = held.shape[1] if (held != held[:, :1]).any() else 1
    new = np.ones((len(held), behind), dtype=np.int64)
    new[:, 1:] = held[:, 1:behind] != held[:, : behind - 1]
    return behind, (np.cumsum(new) - 1).reshape(new.shape)


def table_bytes(model: ChoiceModel, lattice: Lattice, pairs: Pairs) -> int:
    """Return the bytes that the search takes for its tables."""
    behind, place = places(model)
    states = lattice.size * (model.devices + 1) * behind
    return states * BYTES_A_STATE + len(pairs.to) * (int(place.max()) + 1) * BYTES_A_LOAD
