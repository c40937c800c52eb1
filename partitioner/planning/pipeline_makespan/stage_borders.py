"""Stages as the pieces of one order of the supernodes, and moves of the borders between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from partitioner.problem.arrays import Floats, Ints

STRIDES = (1, 2, 3, 4, 6, 8, 12)  # supernodes that borders are moved by
TOGETHER = (1, 2, 3)  # neighbouring borders that are moved together


@dataclass(frozen=True, eq=False)
class StageBorders:
    """The stages of `n` supernodes as pieces of an order in which they follow one another.

    Parameters
    ----------
    order
        Shape (n,): the supernodes, stage by stage.
    borders
        Shape (stages + 1,): where stages begin in the order, and its end.

    Examples
    --------
    >>> found = StageBorders.of(np.array([0, 1, 0, 1]))
    >>> found.order.tolist(), found.borders.tolist()
    ([0, 2, 1, 3], [0, 2, 4])
    """

    order: Ints
    borders: Ints

    @classmethod
    def of(cls, stage: Ints) -> StageBorders:
        """Return the pieces for the stage of every supernode; within a stage supernodes keep their order."""
        return cls(np.argsort(stage, kind="stable"), np.append(0, np.cumsum(np.bincount(stage))))

    @classmethod
    def even(cls, weight: Floats, stages: int) -> StageBorders:
        """Return stages of even weight in the order of the supernodes, none of which is empty."""
        return cls.of(_even(weight, stages))

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return len(self.borders) - 1

    @property
    def stage(self) -> Ints:
        """Shape (n,): the stage of every supernode."""
        found = np.empty_like(self.order)
        found[self.order] = np.repeat(np.arange(self.stages), np.diff(self.borders))
        return found

    def cut_again(self, weight: Floats, pieces: int) -> StageBorders:
        """Return the stages with each of them cut into pieces of even weight, as far as it has supernodes."""
        stage = np.zeros(len(self.order), dtype=np.int64)
        for i, (first, last) in enumerate(pairwise(self.borders.tolist())):
            own = self.order[first:last]
            stage[own] = i * pieces + _even(weight[own], min(pieces, len(own)))
        return StageBorders.of(np.unique(stage, return_inverse=True)[1])

    def moves(self) -> Iterator[tuple[int, int, int]]:
        """Yield the moves of neighbouring borders as first border, one after the last, and distance."""
        for count in TOGETHER:
            for stride in STRIDES:
                for first in range(1, self.stages - count + 1):
                    yield first, first + count, -stride
                    yield first, first + count, stride

    def moved(self, first: int, end: int, distance: int) -> StageBorders | None:
        """Return the stages after a move; None if a stage would be empty."""
        borders = self.borders.copy()
        borders[first:end] += distance
        return None if (np.diff(borders) < 1).any() else replace(self, borders=borders)

    def shaken(self, rng: np.random.Generator, count: int) -> StageBorders:
        """Return the stages after moves of some borders at random."""
        found = self
        for _ in range(count if self.stages > 1 else 0):
            first = int(rng.integers(1, self.stages))
            distance = int(rng.choice(STRIDES)) * int(rng.choice([-1, 1]))
            found = found.moved(first, first + 1, distance) or found
        return found


def _even(weight: Floats, count: int) -> Ints:
    """Return the number of the piece of each item, for at most as many pieces as items, of even weight."""
    total = np.concatenate(([0.0], np.cumsum(weight)))
    steps = np.arange(1, count)
    place = np.abs(total[:, None] - total[-1] * steps / count).argmin(axis=0)
    place = np.maximum(np.maximum.accumulate(place - steps) + steps, steps)
    place = np.minimum(place, len(weight) - count + steps)
    return np.searchsorted(place, np.arange(len(weight)), side="right")
