"""What a search over levels looks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.pipeline.arrays import Bools
from partitioner.methods.pipeline.ground import SLACK
from partitioner.preprocess.problem import Floats, Ints


@dataclass(frozen=True)
class Aim:
    """What is looked for: see :class:`partitioner.methods.pipeline.arrays.Hunt`.

    Parameters
    ----------
    threshold, limit, floor, summed
        As there.
    after
        Shape (groups + 1, I): what is outside an ideal adds at least, on so many groups.
    """

    threshold: float
    limit: float
    floor: float
    summed: bool
    after: Floats | None = None

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
