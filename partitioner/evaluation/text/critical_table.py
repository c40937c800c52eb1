"""The critical path of operators that run one by one, as a table."""

from __future__ import annotations

from itertools import pairwise

from rich.table import Table
from rich.text import Text

from partitioner.base.errors import shown
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.evaluation.text.figures import figure
from partitioner.evaluation.text.timetable import NARROW, WIDE, names_within

MOST_ROWS = 12
ROUNDING = 1e-9


def critical_table(schedule: Schedule, wide: bool) -> Table:
    """Return a table with a line for each run of operators of the critical path on one device.

    Of many lines those in the middle are left out. The column `before` gives the time between the end of the
    previous run and the start of this one, and its cause: a transfer from a device, or `idle` if there is no
    cause on the path.
    """
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    for name in ("start", "finish", "device", "before", "operators"):
        table.add_column(name, justify="right" if name in ("start", "finish") else "left", overflow="fold")
    runs = _runs(schedule)
    for number, run in enumerate(runs):
        if number < MOST_ROWS // 2 or number >= len(runs) - MOST_ROWS // 2:
            table.add_row(*_cells(run, runs[number - 1] if number else None, wide))
        elif number == MOST_ROWS // 2:
            table.add_row("", "", "", "", f"... {len(runs) - MOST_ROWS} more runs")
    return table


def _runs(schedule: Schedule) -> list[list[Run]]:
    """Return the operators of the critical path, divided where the device changes or is idle in between."""
    path = [schedule.entries[place] for place in schedule.critical_path]
    runs = [[entry] for entry in path[:1]]
    for before, entry in pairwise(path):
        late = entry.start - before.finish > ROUNDING * entry.start
        if entry.device != before.device or late:
            runs.append([])
        runs[-1].append(entry)
    return runs


def _cells(run: list[Run], before: list[Run] | None, wide: bool) -> list[Text]:
    names = [shown(node, 24) for entry in run for node in entry.nodes]
    cells = (
        figure(run[0].start),
        figure(run[-1].finish),
        run[0].device,
        _wait(run[0], before[-1] if before else None),
        names_within(names, WIDE if wide else NARROW),
    )
    return [Text(cell) for cell in cells]


def _wait(entry: Run, before: Run | None) -> str:
    """Return the time between the previous operator and this one, and its cause."""
    since = before.finish if before is not None else 0.0
    length = entry.start - since
    if before is not None and before.device != entry.device:
        return f"{figure(length)} from {before.device}"
    return f"{figure(length)} idle" if length > ROUNDING * entry.start else "-"
