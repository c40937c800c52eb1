"""What a search over the stages of some devices found."""

from __future__ import annotations

from typing import NamedTuple

from partitioner.problem.arrays import Ints


class StagesFound(NamedTuple):
    """The result of a search for stages below a limit.

    Parameters
    ----------
    borders
        Shape (stages + 1,): the cuts between the stages; None if there are none below the limit.
    bound
        A lower bound on the largest load of all stages between these cuts; 0 if none is proven.
    complete
        Whether the search was not cut short, so that `bound` is proven.
    """

    borders: Ints | None
    bound: float
    complete: bool
