"""The pipelines that a search over levels looks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.methods.dp.pipeline.tables import SLACK
from partitioner.problem.arrays import Floats, Ints


class Outside(NamedTuple):
    """The least values of stages that hold the supernodes outside an ideal, by the devices that they have.

    Parameters
    ----------
    value
        Shape (I, S): the least value on the devices of a state, infinity if no pipeline within the threshold
        continues with these.
    used
        Shape (S, K): the number of devices of each kind in a state.
    """

    value: Floats
    used: Ints

    def least(self, ideals: Ints, free: Ints) -> Floats:
        """Return the least value for each of the `ideals` on free devices, whose numbers have shape (K,)."""
        fits = (self.used <= free).all(axis=1)
        return np.asarray(self.value[np.ix_(ideals, fits)].min(axis=1, initial=np.inf))


@dataclass(frozen=True)
class SearchTarget:
    """The limits on pipelines, see :class:`partitioner.methods.dp.pipeline.arrays.PipelineSearchSpec`.

    Parameters
    ----------
    threshold, limit, floor, summed
        The fields of that class.
    after
        Shape (groups + 1, I): the least value of stages outside an ideal, by the number of groups.
    outside
        The same by the numbers of devices of each kind.
    """

    threshold: float
    limit: float
    floor: float
    summed: bool
    after: Floats | None = None
    outside: Outside | None = None

    def joined(self, first: float, second: float, base: float = 0.0) -> float:
        """Return the value of two parts of a pipeline; if values add up, `base` is subtracted."""
        return first + second - base if self.summed else max(first, second)

    def hopeless(self, ideals: Ints, value: Floats, groups: int) -> Bools:
        """Return for each of the `ideals`, held at a value, whether all its pipelines exceed the limit."""
        if self.after is None:
            return value > self.limit
        after = self.after[groups, ideals]
        whole = value + after * (1 - SLACK) if self.summed else np.maximum(value, after)
        return np.asarray(whole > self.limit)
