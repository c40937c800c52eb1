"""A schedule as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from partitioner.base.errors import shown
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.evaluation.text.figures import figure
from partitioner.evaluation.text.names import joined_within

MOST_ROWS = 40
SHORT_NAMES, LONG_NAMES = 28, 64


@dataclass(frozen=True)
class TimetableRow:
    """A line of the table: the positions of its entries, which are one subgraph or consecutive CPU nodes."""

    places: range
    critical: bool


def timetable(schedule: Schedule, wide: bool) -> Table:
    """Return a table with a line for each subgraph and each run of CPU nodes, in order of start.

    Of many lines those in the middle are left out. The column `after` has the number of the line that the
    line's first entry on the critical path waits for, or its first entry if none is on the path.
    """
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    names = ("", "#", "start", "finish", "device", *(("in", "compute", "out") if wide else ()), "after")
    for name in names:
        table.add_column(name, justify="left" if name in ("", "device") else "right", overflow="fold")
    table.add_column("nodes", overflow="fold")
    rows = _rows(schedule)
    line = {place: number for number, row in enumerate(rows, 1) for place in row.places}
    for number, row in enumerate(rows, 1):
        if number <= MOST_ROWS // 2 or number > len(rows) - MOST_ROWS // 2:
            table.add_row("*" if row.critical else "", str(number), *_cells(schedule, row, line, wide))
        elif number == MOST_ROWS // 2 + 1:
            blank = [""] * (len(names) - 1)
            table.add_row("", *blank, f"... {len(rows) - 2 * (MOST_ROWS // 2)} more lines")
    return table


def _rows(schedule: Schedule) -> list[TimetableRow]:
    critical = set(schedule.critical_path)
    first, rows = 0, []
    for place in range(1, len(schedule.entries) + 1):
        if place == len(schedule.entries) or not _merge(schedule.entries[place - 1], schedule.entries[place]):
            rows.append(TimetableRow(range(first, place), not critical.isdisjoint(range(first, place))))
            first = place
    return rows


def _merge(before: Run, after: Run) -> bool:
    return before.index is None and after.index is None


def _cells(schedule: Schedule, row: TimetableRow, line: dict[int, int], wide: bool) -> list[Text]:
    runs = [schedule.entries[place] for place in row.places]
    leading = next((place for place in schedule.critical_path if place in row.places), row.places[0])
    waits_for = schedule.entries[leading].waits_for
    devices = list(dict.fromkeys(run.device for run in runs))
    more = f" and {len(devices) - 1} more" if len(devices) > 1 else ""
    parts = (
        [
            figure(sum(getattr(run, part) for run in runs))
            for part in ("transfer_in", "compute", "transfer_out")
        ]
        if wide
        else []
    )
    cells = [
        figure(runs[0].start),
        figure(max(run.finish for run in runs)),
        devices[0] + more,
        *parts,
        "-" if waits_for is None else str(line[waits_for]),
        names_within(
            [shown(node, 24) for run in runs for node in run.nodes], LONG_NAMES if wide else SHORT_NAMES
        ),
    ]
    return [Text(cell) for cell in cells]


def names_within(names: Sequence[str], width: int) -> str:
    """Return the number of nodes, and as many of their first names as fit in `width` characters."""
    return joined_within(names, width, f"{len(names)}: ")
