"""How much is remembered of each state: more and more paths, of more and more pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from partitioner.methods.bounds.fill_drain.arrays import MakespanTable
from partitioner.methods.bounds.fill_drain.rows import RowEvents, no_rows, row_events
from partitioner.methods.bounds.fill_drain.spine import PassSpine
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.in_flight import HOLD_A_BATCH

MOST_NUMBERS = 40_000_000  # in a table
MOST_DETAIL = 8


@dataclass(frozen=True, eq=False)
class DetailLevel:
    """The paths whose lengths are known, and for how many pipelines of a state.

    Parameters
    ----------
    rows
        The passes at which these paths change to other rows.
    returns
        Whether backward passes return.
    slots
        The number of pipelines.
    """

    rows: RowEvents
    returns: bool
    slots: int = 1

    @property
    def labels(self) -> int:
        """How many paths there are."""
        forward, backward = len(self.rows.forward), len(self.rows.backward)
        return forward * backward if self.returns else forward + backward

    @property
    def whole(self) -> int:
        """The number of the path from the first to the last pass."""
        return len(self.rows.backward) - 1 if self.returns else 0

    def numbers(self, states: int) -> int:
        """Return how many numbers a table has, for the number of states of all ideals."""
        return states * self.slots * (self.labels + 3)

    def table(self, ideals: int, states: int) -> MakespanTable:
        """Return the table in which only the empty ideal has been reached."""
        shape = ideals, states, self.slots
        table = MakespanTable(
            value=np.full(shape, np.inf),
            label=np.full((*shape, self.labels), np.inf),
            origin=np.empty(shape, np.int32),
            slot=np.empty(shape, np.int32),
            kind=np.empty(shape, np.int8),
            copies=np.empty(shape, np.int32),
            used=np.zeros(shape[:2], np.int64),
        )
        table.used[0, 0], table.value[0, 0], table.label[0, 0] = 1, 0.0, -np.inf
        if not self.returns:
            table.label[0, 0, :, -1:] = 0.0  # the last pass ends the schedule
        return table


def least_level() -> DetailLevel:
    """Return the level at which no path through later stages is known but the time of a sample."""
    return DetailLevel(no_rows(), returns=False)


def levels_of(problem: PipelineProblem, spine: PassSpine, states: int, fewer: bool) -> Iterator[DetailLevel]:
    """Yield the levels from the coarsest to the finest one whose table is not too large.

    Parameters
    ----------
    problem, spine
        The problem and its spine.
    states
        How many states all ideals have together.
    fewer
        Whether fewer devices may be behind a stage than its state says.
    """
    ahead, samples, before = _ahead(problem, spine), problem.pipeline.microbatches or 1, set()
    if ahead is None:
        yield least_level()
        return
    finest = min(_most_detail(problem, spine), max(ahead), samples - 1)
    for wanted, slots in ((0, 1), (finest, 4), (finest, 16), (finest, 64)):
        for detail in range(wanted, -1, -1):
            level = DetailLevel(row_events(samples, ahead, detail, fewer), spine.returns, slots)
            if level.numbers(states) <= MOST_NUMBERS or wanted == 0:
                if (detail, slots) not in before:
                    yield level
                before.add((detail, slots))
                break


def _most_detail(problem: PipelineProblem, spine: PassSpine) -> int:
    """Return how many passes next to the first and last ones can lengthen paths, at most MOST_DETAIL."""
    if problem.pipeline.schedule in HOLD_A_BATCH:
        return 0
    return MOST_DETAIL if spine.returns else 1


def _ahead(problem: PipelineProblem, spine: PassSpine) -> list[int] | None:
    """Return how many samples a stage is ahead, by the number of devices behind it; None if unknown."""
    devices, samples = int(problem.count.sum()), problem.pipeline.microbatches or 1
    if not spine.trains or problem.copies.max() > 1:
        return None
    if problem.pipeline.schedule in HOLD_A_BATCH:
        return [samples] * (devices + 1)
    if spine.returns:
        return list(range(devices + 1))
    return [1] * (devices + 1) if spine.together else None
