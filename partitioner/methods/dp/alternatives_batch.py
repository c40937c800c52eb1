"""The least time of a batch with a choice among alternatives: the sum of all loads, and the largest again.

    total[J, p + degree * r] = min over I of total[I, p] + load of the stage J - I on r copies

is the least sum of loads among the stages without a load above a threshold. It is asked for interval after
interval of the largest load (:mod:`partitioner.methods.dp.batch_intervals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from partitioner.methods.dp._alternatives_core import KnownLoads, LabelTable, lay
from partitioner.methods.dp.alternatives_stages import ChoiceModel, ChosenStage, Pairs, stage_of
from partitioner.methods.dp.batch_intervals import BatchIntervals, LoadInterval
from partitioner.methods.dp.bracket import UNLIMITED
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.method import ROUNDING, OutOfTimeError, Settings
from partitioner.problem.arrays import Ints

BYTES_A_STATE, BYTES_A_LOAD = 16, 8
SLICE = 200_000  # stages of one shape and number of copies between two checks whether the run should end


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
    known: KnownLoads = field(init=False)
    behind: int = field(init=False)

    def __post_init__(self) -> None:
        self.behind, place = places(self.model)
        self.known = KnownLoads(place, np.full((len(self.pairs.to), int(place.max()) + 1), np.nan))

    def narrow(self, least: float) -> bool:
        """Raise the bound and lower the value until they meet; return whether that was done in time.

        `least` is a lower bound of the largest load.
        """
        intervals = BatchIntervals(samples(self.model) - 1)
        intervals.add(least * (1 - ROUNDING), UNLIMITED, least, self.value)
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
        table = LabelTable(np.full(shape, np.inf), np.zeros(shape, np.int32), np.zeros(shape, np.int32))
        table.least[0, 0, 0] = 0.0
        terms = self.model.terms
        for first, end in self.settings.watched(pairwise(self._borders())):
            lay(self.lattice, self.pairs, terms, threshold, first, end, table, self.known)
        self.decided += 1
        return [] if np.isinf(table.least[-1].min()) else self._stages(table)

    def _borders(self) -> list[int]:
        """Return the ideals at which a table looks whether the run should end, from 0 to their number."""
        done = self.pairs.start * self.pairs.least.shape[1] * self.behind
        marks = np.searchsorted(done, np.arange(0, done[-1], SLICE))
        return sorted({0, *marks.tolist(), self.lattice.size})

    def _stages(self, table: LabelTable) -> list[ChosenStage]:
        """Return the stages of the state of the full ideal with the least sum, from first to last."""
        shapes, found = self.model.shapes, list[tuple[Ints, int]]()
        ideal = self.lattice.size - 1
        p, c = np.unravel_index(int(table.least[-1].argmin()), table.least.shape[1:])
        while ideal:
            smaller, d = int(table.before[ideal, p, c]), int(table.by[ideal, p, c])
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
