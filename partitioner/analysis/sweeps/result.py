"""The result of a sweep: its rows, and how many are missing."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rich.table import Table
from rich.text import Text

from partitioner.analysis.sweeps.row import FAILED, LAYOUT, SweepRow
from partitioner.analysis.sweeps.save import save_rows
from partitioner.base.markup import html_table
from partitioner.evaluation.text.figures import figure, gap_cell
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.planning.layouts.result import FIGURES as FIGURES_OF_LAYOUTS
from partitioner.results.serving import MAXIMISED

FIGURES = ("devices", "used", "value", "gap", "seconds")
LAYOUT_FIGURES = ("s a batch", "tokens/s", "MFU", "GB")
NARROW = ("s a batch", "MFU")


@dataclass(frozen=True, eq=False)
class SweepResult:
    """The rows of a sweep in the order of its tasks.

    Parameters
    ----------
    rows
        A row for each task that has ended, in this run or before.
    total
        The number of tasks.
    before
        How many of the rows were there before this run.
    seconds
        The time of this run.
    """

    rows: tuple[SweepRow, ...]
    total: int
    before: int
    seconds: float

    def __repr__(self) -> str:
        return f"<SweepResult: {len(self.rows)} of {self.total} tasks done, {self.failed} failed>"

    def _repr_html_(self) -> str:
        titles = ("workload", "pool", "objective", "options", "status", *FIGURES)
        return html_table(repr(self)[1:-1], titles, [_cells(row, wide=True) for row in self.rows])

    @property
    def complete(self) -> bool:
        """Whether all tasks have ended."""
        return len(self.rows) == self.total

    @property
    def failed(self) -> int:
        """How many tasks failed."""
        return sum(row.status == FAILED for row in self.rows)

    def front(self, workload: str, objective: str = "throughput") -> tuple[SweepRow, ...]:
        """Return the plans of a workload for which no other one is as good on as few devices.

        They are in the order of the number of devices in use: the Pareto front of devices against time.
        """
        rows = [row for row in self.rows if (row.workload, row.objective) == (workload, objective)]
        return pareto_front(rows)

    def summary(self, width: int | None = None) -> str:
        """Return a table of the rows of at most `width` columns, by default the terminal's."""
        wide = columns(width) >= WIDE
        titles = ("workload", "pool", "objective", *(["options"] if wide else []), "status")
        layouts = all(row.objective == LAYOUT for row in self.rows)
        table = _layout_table(self.rows, wide) if layouts else figure_table(wide, titles, FIGURES)
        for row in self.rows if not layouts else ():
            table.add_row(*map(Text, _cells(row, wide)))
        reasons = Counter((row.status, row.reason.splitlines()[0]) for row in self.rows if row.reason)
        lines = [Text(f"{status}, {times} x: {reason}") for (status, reason), times in reasons.items()]
        return render([Text(self._head()), *([table] if self.rows else []), *lines], width)

    def _head(self) -> str:
        before = f", {self.before:,} of them before" if self.before else ""
        words = f"{len(self.rows):,} of {self.total:,} tasks done{before}"
        return f"{words}, {self.failed:,} failed, {self.seconds:.1f} s"

    def to_json(self) -> str:
        """Return the rows and their number as one JSON object."""
        counts = {"total": self.total, "done": len(self.rows), "failed": self.failed, "before": self.before}
        return json.dumps(
            counts | {"seconds": self.seconds, "rows": [row.flat() for row in self.rows]}, indent=1
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as a table: ``.csv``, ``.jsonl`` (JSON lines) or ``.parquet``; all of it or nothing.

        Raises
        ------
        OptionError
            If the file's name ends in none of these.
        BackendUnavailable
            For ``.parquet``, if pyarrow is not installed.
        PartitionerError
            If the file cannot be written.
        """
        save_rows(self.rows, path)


def pareto_front(rows: Iterable[SweepRow]) -> tuple[SweepRow, ...]:
    """Return the rows for which no other row is as good on as few devices in use, the fewest devices first.

    For an objective that is maximised a larger value is better.

    Examples
    --------
    >>> found = ((2, 5.0), (1, 9.0), (3, 5.0))
    >>> rows = [SweepRow("", "a", "", 4, "batch", "optimal", value=v, used=n) for n, v in found]
    >>> [(row.used, row.value) for row in pareto_front(rows)]
    [(1, 9.0), (2, 5.0)]
    """
    found: list[SweepRow] = []
    for row in sorted((row for row in rows if row.value is not None), key=lambda row: (row.used, _cost(row))):
        if not found or _cost(row) < _cost(found[-1]):
            found.append(row)
    return tuple(found)


def _cost(row: SweepRow) -> float:
    """Return the value of a plan, of an objective that is maximised with a minus."""
    value = row.value or 0.0
    return -value if MAXIMISED.get(row.objective) else value


def _cells(row: SweepRow, wide: bool) -> list[str]:
    options = ", ".join(f"{name}={value}" for name, value in row.options.items())
    value, bound = row.value, row.bound
    plan = (
        ("-", "-", "-")
        if value is None or bound is None
        else (str(row.used), figure(value), _gap(value, bound))
    )
    return [
        *(row.workload, row.pool, row.objective, *([options] if wide else []), row.status),
        *(str(row.devices), *plan, f"{row.seconds:.2f}"),
    ]


def _layout_table(rows: Sequence[SweepRow], wide: bool) -> Table:
    """Return a line for each question for layouts, with what varies of it and the fastest layout."""
    names = LAYOUT_FIGURES if wide else NARROW
    asked_for = dict.fromkeys(name for row in rows for name in row.options)
    varied = [name for name in asked_for if len({str(row.options.get(name)) for row in rows}) > 1]
    table = figure_table(wide, ("config", "GPUs", "asked", LAYOUT), (*names, "gap", *["seconds"] * wide))
    for row in rows:
        asked = ", ".join(f"{name}={row.options[name]}" for name in varied if name in row.options)
        if row.value is None or row.bound is None:
            cells = [row.status, *["-"] * (len(names) + 1)]
        else:
            best: Any = SimpleNamespace(seconds=row.value, **row.figures)
            figures = (FIGURES_OF_LAYOUTS[name](best) for name in names)
            cells = [row.figures[LAYOUT], *figures, _gap(row.value, row.bound)]
        table.add_row(*map(Text, (row.workload, row.pool, asked, *cells, *[f"{row.seconds:.2f}"] * wide)))
    return table


def _gap(value: float, bound: float) -> str:
    return gap_cell(value, bound) if value >= bound else gap_cell(bound, value)
