"""The passes of a batch where devices have several stages, and what each of them waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Ints
from partitioner.workload.directions import WEIGHT
from partitioner.workload.virtual_stages.schedules import VirtualSchedule

FORWARDS, INPUTS, WEIGHTS = range(3)  # whole backward passes count as those of the inputs
KINDS = np.array([FORWARDS, INPUTS, INPUTS, WEIGHTS])  # by direction
NONE = -1


class PassGraph(NamedTuple):
    """`n` passes, each of which comes after those that it waits for; each array has shape (n,).

    Parameters
    ----------
    stages
        How many stages there are.
    halves
        Whether the backward passes are in halves.
    stage, direction
        The stage of every pass; 0 for a forward pass, 1 for a backward pass or its first half, else 2.
    sample
        The microbatch of every pass.
    before
        The pass before it on its device; -1 if there is none.
    sender
        The pass on another device that it waits for if every stage waits for the one before it, forward, and
        for the one after it, backward; -1 if there is none.
    """

    stages: int
    halves: bool
    stage: Ints
    direction: Ints
    sample: Ints
    before: Ints
    sender: Ints

    def without(self, ranks: Sequence[int], apart: Collection[int]) -> PassGraph:
        """Return the passes where no stages wait for those apart, nor these for any.

        `ranks` are the devices of the stages.
        """
        waits = [stage not in apart for stage in range(self.stages)]
        place = np.full((3, self.stages, int(self.sample.max()) + 1), NONE)
        place[self.direction, self.stage, self.sample] = np.arange(len(self.stage))
        senders = [[_sender(kind, stage, ranks, waits) for stage in range(self.stages)] for kind in range(3)]
        of = np.array(senders)[self.direction, self.stage]
        return self._replace(sender=np.where(of == NONE, NONE, place[self.direction, of, self.sample]))


def pass_graph(schedule: VirtualSchedule, devices: int, chunks: int, microbatches: int) -> PassGraph:
    """Return the passes of a batch under a schedule, where every stage waits for its neighbours.

    Examples
    --------
    >>> from partitioner.workload.virtual_stages.schedules import VIRTUAL
    >>> found = pass_graph(VIRTUAL["interleaved_1f1b"], 2, 2, 2)
    >>> found.stage.tolist()
    [0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 2, 2, 1, 1, 0, 0]
    >>> found.sender.tolist()
    [-1, -1, 0, 1, 2, 3, 4, -1, 5, -1, 7, 9, 10, 11, 12, 13]
    >>> found.without([0, 1, 0, 1], {1}).sender.tolist()
    [-1, -1, -1, -1, -1, -1, 4, -1, 5, -1, 7, 9, -1, -1, -1, -1]
    """
    rows, halves = _rows(schedule, devices, chunks, microbatches)
    ranks = schedule.ranks(devices, chunks)
    waits = [True] * len(ranks)
    place = np.full((3, len(ranks), microbatches), NONE)
    waiting: dict[tuple[int, int, int], int] = {}
    at, ready = [0] * devices, deque(range(devices))
    found: list[tuple[int, int, int, int, int]] = []
    while ready:
        rank = ready.popleft()
        for direction, stage, sample in rows[rank][at[rank] :]:
            key = direction, _sender(direction, stage, ranks, waits), sample
            if key[1] != NONE and place[key] == NONE:
                waiting[key] = rank
                break
            before = NONE if at[rank] == 0 else int(place[rows[rank][at[rank] - 1]])
            place[direction, stage, sample] = len(found)
            found.append((stage, direction, sample, before, NONE if key[1] == NONE else int(place[key])))
            at[rank] += 1
            if (direction, stage, sample) in waiting:
                ready.append(waiting.pop((direction, stage, sample)))
    columns = np.array(found, dtype=np.int64).reshape(-1, 5).T
    return PassGraph(len(ranks), halves, *(np.ascontiguousarray(column) for column in columns))


def _rows(
    schedule: VirtualSchedule, devices: int, chunks: int, microbatches: int
) -> tuple[list[list[tuple[int, int, int]]], bool]:
    """Return direction, stage and microbatch of the passes of every device, and whether there are halves."""
    found, halves = [], False
    for rank in range(devices):
        row = schedule.row(rank, devices, chunks, microbatches)
        own = np.array(schedule.stages_of(rank, devices, chunks))[row.chunk]
        halves = halves or bool((row.direction == WEIGHT).any())
        kind = KINDS[row.direction]
        found.append(list(zip(kind.tolist(), own.tolist(), row.microbatch.tolist(), strict=True)))
    return found, halves


def _sender(direction: int, stage: int, ranks: Sequence[int], waits: list[bool]) -> int:
    """Return the stage on another device for whose pass one waits; -1 if there is none."""
    step = {FORWARDS: -1, INPUTS: 1}.get(direction, 0)
    if not step or not waits[stage]:
        return NONE
    other = stage + step
    while 0 <= other < len(ranks) and not waits[other]:
        other += step
    return NONE if not 0 <= other < len(ranks) or ranks[other] == ranks[stage] else other
