"""A mixed-integer program in sparse arrays, which every backend turns into its solver's model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partitioner.problem.arrays import Floats, Ints, Rows, rows_of


@dataclass(frozen=True, eq=False)
class Program:
    """A program: minimise ``cost @ x`` with ``row_lower <= A x <= row_upper`` and ``lower <= x <= upper``.

    Parameters
    ----------
    lower, upper, cost
        Shape (columns,): bounds and cost of each variable.
    integer
        Shape (columns,): whether the variable must be an integer.
    implied
        Shape (columns,): whether the variable may be treated as an integer without losing an optimum.
    entry
        For each row of A the columns of its nonzero entries.
    factor
        The values of A, in the order of ``entry.items``.
    row_lower, row_upper
        Shape (rows,): bounds of each row, infinite where there is none.
    """

    lower: Floats
    upper: Floats
    cost: Floats
    integer: NDArray[np.bool_]
    implied: NDArray[np.bool_]
    entry: Rows
    factor: Floats
    row_lower: Floats
    row_upper: Floats

    @property
    def columns(self) -> int:
        """How many variables there are."""
        return len(self.lower)

    @property
    def rows(self) -> int:
        """How many constraints there are."""
        return len(self.row_lower)


@dataclass(eq=False)
class Builder:
    """A program under construction, to which variables and rows are added many at a time."""

    columns: int = 0
    rows: int = 0
    _variables: list[tuple[Floats, Floats, bool, bool]] = field(default_factory=list)
    _bounds: list[tuple[Floats, Floats]] = field(default_factory=list)
    _terms: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)

    def variables(
        self, count: int, upper: ArrayLike, lower: ArrayLike = 0.0, integer: bool = False, time: bool = False
    ) -> Ints:
        """Add variables and return their columns, shape (count,); `time` says whether they are times."""
        self._variables.append((_each(lower, count), _each(upper, count), integer, time))
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def new_rows(self, count: int, lower: ArrayLike, upper: ArrayLike) -> Ints:
        """Add rows without terms and return their numbers, shape (count,)."""
        self._bounds.append((_each(lower, count), _each(upper, count)))
        self.rows += count
        return np.arange(self.rows - count, self.rows)

    def add(self, row: ArrayLike, column: ArrayLike, factor: ArrayLike) -> None:
        """Add ``factor * column`` to rows; the three arguments are broadcast against each other."""
        rows, columns, factors = np.broadcast_arrays(row, column, factor)
        self._terms.append((rows.ravel(), columns.ravel(), factors.ravel()))

    def at_most(self, small: ArrayLike, large: ArrayLike) -> None:
        """Add a row ``small <= large`` for each pair of variables."""
        small, large = np.broadcast_arrays(small, large)
        rows = self.new_rows(small.size, -np.inf, 0.0)
        self.add(rows, small.ravel(), 1.0)
        self.add(rows, large.ravel(), -1.0)

    def program(self, objective: Ints) -> Program:
        """Return the program that minimises the sum of `objective`; all variables but times are `implied`."""
        lower = np.concatenate([low for low, *_ in self._variables])
        upper = np.concatenate([up for _, up, *_ in self._variables])
        integer = np.concatenate([np.full(len(low), whole) for low, _, whole, _ in self._variables])
        time = np.concatenate([np.full(len(low), time) for low, _, _, time in self._variables])
        cost = np.zeros(self.columns)
        cost[objective] = 1.0
        row, column, factor = (np.concatenate(each) for each in zip(*self._terms, strict=True))
        key, place = np.unique(row * self.columns + column, return_inverse=True)
        total = np.bincount(place, factor, len(key))
        row, column = np.divmod(key[total != 0], self.columns)
        return Program(
            lower=lower,
            upper=upper,
            cost=cost,
            integer=integer,
            implied=(cost == 0) & ~time,
            entry=rows_of(row, column, self.rows),
            factor=total[total != 0],
            row_lower=np.concatenate([low for low, _ in self._bounds]),
            row_upper=np.concatenate([up for _, up in self._bounds]),
        )


def _each(value: ArrayLike, count: int) -> Floats:
    """Return a value, or an array of values, as an array of shape (count,)."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), count)
