"""A table of cells, each with our value, the published one and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paper_tables.catalogue import Entry
from paper_tables.verdict import GOOD, NONE


@dataclass(frozen=True)
class Cell:
    """One cell; `form` says how a number is printed, and None stands for no value."""

    ours: float | str | None
    published: float | str | None = None
    verdict: str = NONE
    form: str = ".2f"

    @property
    def good(self) -> bool:
        """False if the published value is not reached."""
        return self.verdict in GOOD

    def text(self, value: float | str | None) -> str:
        """A value as the table prints it."""
        if value is None:
            return "-"
        return value if isinstance(value, str) else format(value, self.form)


@dataclass(frozen=True)
class Row:
    """One workload: a cell for every column, by the column's name."""

    entry: Entry
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """One table of the paper, by its number or, where it has none, by name; with remarks for its reader."""

    number: int | str
    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0].cells) if self.rows else []

    @property
    def good(self) -> bool:
        """True if every cell is."""
        return all(cell.good for row in self.rows for cell in row.cells.values())
