"""What a search over levels looks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.methods.dp.pipeline.tables import SLACK
from partitioner.problem.arrays import Floats, Ints


class Outside(NamedTuple):
    """What stages that hold all that an ideal does not are worth at least, by the devices they have.

    Parameters
    ----------
    value
        Shape (I, S): the least value on the devices of a state, infinity where no pipeline within the
        threshold goes on with these.
    used
        Shape (S, K): the devices of each kind of a state.
    """

    value: Floats
    used: Ints

    def least(self, ideals: Ints, free: Ints) -> Floats:
        """Shape of `ideals`: the least value on the free devices, shape (K,)."""
        fits = (self.used <= free).all(axis=1)
        return np.asarray(self.value[np.ix_(ideals, fits)].min(axis=1, initial=np.inf))


@dataclass(frozen=True)
class SearchTarget:
    """What is looked for: see :class:`partitioner.methods.dp.pipeline.arrays.PipelineSearchSpec`.

    Parameters
    ----------
    threshold, limit, floor, summed
        As there.
    after
        Shape (groups + 1, I): what is outside an ideal adds at least, on so many groups.
    outside
        The same by the devices of every kind.
    """

    threshold: float
    limit: float
    floor: float
    summed: bool
    after: Floats | None = None
    outside: Outside | None = None

    def joined(self, first: float, second: float, base: float = 0.0) -> float:
        """The value of two parts of a pipeline; where they add up, the second one counts from `base`."""
        return first + second - base if self.summed else max(first, second)

    def hopeless(self, ideals: Ints, value: Floats, groups: int) -> Bools:
        """Shape of `ideals`: does all that holds one of them with this value exceed the limit in the end?"""
        if self.after is None:
            return value > self.limit
        after = self.after[groups, ideals]
        whole = value + after * (1 - SLACK) if self.summed else np.maximum(value, after)
        return np.asarray(whole > self.limit)
