"""The passes that one device of a pipeline runs, in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.workload.directions import DIRECTIONS
from partitioner.workload.graph import Ints


class Row(NamedTuple):
    """The passes of a device in the order in which they run; each array has shape (passes,).

    Parameters
    ----------
    chunk
        Which of the device's stages each pass is of, from 0 in the order of the stages.
    direction
        A position in :data:`partitioner.workload.directions.DIRECTIONS`.
    microbatch
        The microbatch, from 0.
    """

    chunk: Ints
    direction: Ints
    microbatch: Ints

    def cells(self) -> list[str]:
        """Return a text for each pass: chunk, direction, microbatch.

        Examples
        --------
        >>> row_of([(0, "F", 0), (1, "F", 0)]).cells()
        ['0F0', '1F0']
        """
        parts = zip(self.chunk.tolist(), self.direction.tolist(), self.microbatch.tolist(), strict=True)
        return [f"{chunk}{DIRECTIONS[direction]}{microbatch}" for chunk, direction, microbatch in parts]


def row_of(passes: list[tuple[int, str, int]]) -> Row:
    """Return the row of passes given as chunk, letter of the direction, and microbatch."""
    found = [(chunk, DIRECTIONS.index(letter), microbatch) for chunk, letter, microbatch in passes]
    return Row(*np.array(found, dtype=np.int64).reshape(-1, 3).T)
