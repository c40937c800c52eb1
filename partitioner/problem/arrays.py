"""The types of a problem's arrays, among them lists of lists of integers (CSR)."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Rows(NamedTuple):
    """A list of lists of integers (CSR): row i is ``items[start[i]:start[i + 1]]``."""

    start: Ints
    items: Ints

    def row(self, i: int) -> Ints:
        """Return the items of row `i`."""
        return self.items[self.start[i] : self.start[i + 1]]

    def lists(self) -> list[list[int]]:
        """Return all rows as lists."""
        items = self.items.tolist()
        return [items[first:end] for first, end in pairwise(self.start.tolist())]

    def owners(self) -> Ints:
        """Return the row that each item is in, in the shape of `items`."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def taken(self, order: Ints) -> Rows:
        """Return some of the rows: number i is row ``order[i]``.

        Examples
        --------
        >>> Rows(np.array([0, 2, 3]), np.array([7, 8, 9])).taken(np.array([1, 0])).lists()
        [[9], [7, 8]]
        """
        number = np.full(len(self.start) - 1, -1)
        number[order] = np.arange(len(order))
        owner = number[self.owners()]
        return rows_of(owner[owner >= 0], self.items[owner >= 0], len(order))

    def turned(self) -> Rows:
        """Return rows of row numbers, in which row i is row `count` - 1 - i; all rows ascend.

        Examples
        --------
        >>> Rows(np.array([0, 2, 3, 3]), np.array([1, 2, 2])).turned().lists()
        [[], [0], [0, 1]]
        """
        count = len(self.start) - 1
        owner, item = count - 1 - self.owners(), count - 1 - self.items
        ascending = np.lexsort((item, owner))
        return rows_of(owner[ascending], item[ascending], count)


def rows_of(owner: Ints, items: Ints, count: int) -> Rows:
    """Return `items` grouped by `owner` (0 to `count` - 1), in their given order within a row.

    Examples
    --------
    >>> rows_of(np.array([1, 0, 1]), np.array([7, 8, 9]), 2).row(1).tolist()
    [7, 9]
    """
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=start[1:])
    return Rows(start, np.asarray(items, dtype=np.int64)[np.argsort(owner, kind="stable")])
