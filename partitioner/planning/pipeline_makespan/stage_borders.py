"""Stages as the pieces of one order of the supernodes, and moves of the borders between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from partitioner.problem.arrays import Floats, Ints

STRIDES = (1, 2, 3, 4, 6, 8, 12)  # supernodes that a border is moved by


class StageBorders:
    """The stages of supernodes, shape (n,), as pieces of an order in which they follow one another.

    Supernodes are numbered in a topological order; within a stage they keep it.

    Examples
    --------
    >>> found = StageBorders(np.array([0, 1, 0, 1]))
    >>> found.order.tolist(), found.borders.tolist()
    ([0, 2, 1, 3], [0, 2, 4])
    """

    def __init__(self, stage: Ints) -> None:
        self.stage = stage
        self.order = np.argsort(stage, kind="stable")
        self.borders = np.concatenate(([0], np.cumsum(np.bincount(stage))))

    @classmethod
    def even(cls, weight: Floats, stages: int) -> StageBorders:
        """Return stages of even weight in the order of the supernodes, none of which is empty."""
        return cls(_even(weight, stages))

    def cut_again(self, weight: Floats, pieces: int) -> StageBorders:
        """Return the stages with each of them cut into pieces of even weight, as far as it has supernodes."""
        stage = np.zeros(len(self.stage), dtype=np.int64)
        for i, (first, last) in enumerate(pairwise(self.borders.tolist())):
            own = self.order[first:last]
            stage[own] = i * pieces + _even(weight[own], min(pieces, len(own)))
        return StageBorders(np.unique(stage, return_inverse=True)[1])

    def moves(self) -> Iterator[Ints]:
        """Yield the stages after each move of a border, by one or more supernodes; no stage becomes empty."""
        for stride in STRIDES:
            for k in range(1, len(self.borders) - 1):
                for border in (self.borders[k] - stride, self.borders[k] + stride):
                    if self.borders[k - 1] < border < self.borders[k + 1]:
                        moved = self.borders.copy()
                        moved[k] = border
                        yield self._of(moved)

    def _of(self, borders: Ints) -> Ints:
        stage = np.empty_like(self.stage)
        stage[self.order] = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
        return stage


def _even(weight: Floats, count: int) -> Ints:
    """Return the number of the piece of each item, for at most as many pieces as items, of even weight."""
    total = np.concatenate(([0.0], np.cumsum(weight)))
    steps = np.arange(1, count)
    place = np.abs(total[:, None] - total[-1] * steps / count).argmin(axis=0)
    place = np.maximum(np.maximum.accumulate(place - steps) + steps, steps)
    place = np.minimum(place, len(weight) - count + steps)
    return np.searchsorted(place, np.arange(len(weight)), side="right")
