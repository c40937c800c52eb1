"""Data of split operations: what each part takes, and the tasks of a graph with split operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks

WHOLE, SPLIT, PART, CONCATENATE = range(4)


class Share(NamedTuple):
    """The nodes that a split makes of an operation.

    Parameters
    ----------
    parts
        How many parts there are.
    time
        Shape (D, 3): time of a split node, of a part, and of the concatenate node, infinity where they may
        not run.
    size
        Memory of a part; the other nodes take none.
    divides_input, divides_output
        See :class:`partitioner.Dimension`.
    """

    parts: int
    time: Floats
    size: float
    divides_input: bool
    divides_output: bool


@dataclass(frozen=True, eq=False)
class Draft:
    """The tasks of a graph in which some operations are split.

    Parameters
    ----------
    tasks
        Numbered as before, with those of a split operation in its place: its split nodes, its parts, its
        concatenate node. `node` is the node of the unsplit graph that each stems from.
    role
        Shape (n,): ``WHOLE``, ``SPLIT``, ``PART`` or ``CONCATENATE``.
    number
        Shape (n,): the number of each task among those of its role and node.
    """

    tasks: Tasks
    role: Ints
    number: Ints


def draft_of(tasks: Tasks) -> Draft:
    """Return the draft of tasks of which none is split."""
    return Draft(tasks, np.full(tasks.n, WHOLE), np.zeros(tasks.n, dtype=np.int64))
