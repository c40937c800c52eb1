"""Tables of devices, and the layout of text; this module does not depend on the types of results."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from partitioner.base.argument_types import MANY, is_count
from partitioner.base.errors import OptionError, shown
from partitioner.base.safe_text import visible
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.evaluation.text.figures import amount, figure, samples_per_second
from partitioner.evaluation.text.names import joined_within

MOST_LINES = 40
SHORT_NAMES, LONG_NAMES = 28, 64
BAR_WIDTH = 24
WIDE = 128
NARROWEST = 80
WIDEST = 1_000_000
FIGURES = ("load", "compute", "in", "out", "sync", "memory", "full", "nodes", "load %")
SERVING = ("load", "load %", "compute", "nodes", "memory", "full", "per sample", "samples")
UNITS = {
    **dict.fromkeys(("throughput", "gpipe", "latency", "piper"), " per sample"),
    **dict.fromkeys(("batch", "layout"), " per batch"),
    "makespan": " per step",
    "capacity": " samples in flight",
}
RATES = dict.fromkeys(
    ("throughput", "gpipe", "piper"), samples_per_second
)  # values are the time between two samples
PIPELINE_UNITS = UNITS | {"makespan": " per batch"}
SAMPLES = "per sample: the cache that a sample keeps there; samples: how many of them fit"
OPERATORS = "the critical path, by runs on one device; before: what each run waited for"
CRITICAL = "* is on the critical path; after: the line whose output or device it waits for"


def tables_of(
    loads: Sequence[DeviceLoad],
    order: Sequence[str],
    schedule: Schedule | None,
    width: int | None,
    by_operator: bool,
) -> list[RenderableType]:
    """Return a table of the devices, then one of the schedule or the critical path if there is one."""
    devices = device_table(loads, order, width)
    if any(load.cache for load in loads):
        return [devices, Text(SAMPLES)]
    if schedule is None:
        return [devices]
    if by_operator:
        return [devices, "", Text(OPERATORS), critical_table(schedule, wide=columns(width) >= WIDE)]
    return [devices, "", timetable(schedule, wide=columns(width) >= WIDE), CRITICAL]


def device_table(devices: Sequence[DeviceLoad], stages: Sequence[str], width: int | None) -> Table:
    """Return a table with a line for each stage and idle device.

    If replicas exchange weights, a column for the time of this exchange replaces `load %`. For objective
    ``"capacity"`` there are the cache of a sample and the number of samples that fit, and no transfers.
    """
    wide = columns(width) >= WIDE
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    table.add_column("stage", no_wrap=True)
    table.add_column("device", overflow="fold")
    names = _figures_for(devices)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("of the largest load", no_wrap=True)
    place: dict[str, list[int]] = {}
    for number, name in enumerate(stages, 1):
        place.setdefault(name, []).append(number)
    copies = Counter(device.replica_of for device in devices)
    largest = max(device.load for device in devices)
    leads = [device for device in devices if device.replica_of is None]
    for device in sorted(leads, key=lambda device: place.get(device.name, [len(stages) + 1])):
        share = device.load / largest if largest > 0 else 0.0
        figures = _figures(device, share)
        numbers = ", ".join(map(str, place.get(device.name, []))) or "-"
        titles = numbers, _title(device.name, 1 + copies[device.name])
        bars = [bar(share)] if wide else []
        table.add_row(*titles, *(figures[name] for name in names), *bars)
    return table


def render(parts: Sequence[RenderableType], width: int | None = None) -> str:
    """Return the parts as plain text of at most `width` columns (at least 80), by default the terminal's."""
    console = Console(
        file=io.StringIO(),
        width=max(NARROWEST, columns(width)),
        color_system=None,
        highlight=False,
        markup=False,  # names are texts of others: [red] stays what it is
        emoji=False,
    )
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    lines = visible(console.file.getvalue().strip("\n")).split("\n")
    return "\n".join(line.rstrip() for line in lines)


def columns(width: int | None) -> int:
    """Return the width in columns, by default the terminal's."""
    if width is not None and not is_count(width):
        raise OptionError(f"width = {shown(width)}: must be an integer from 1 to {MANY:,}, or None")
    return shutil.get_terminal_size().columns if width is None else min(width, WIDEST)


def unit_of(objective: str, pipelined: bool = False) -> str:
    """Return the unit to write after a value; `pipelined` says that the makespan is that of a pipeline.

    The unit is empty for objectives of other packages, whose values need not be times.

    Examples
    --------
    >>> unit_of("throughput"), unit_of("makespan"), unit_of("makespan", pipelined=True)
    (' per sample', ' per step', ' per batch')
    """
    return (PIPELINE_UNITS if pipelined else UNITS).get(objective, "")


def rate_of(objective: str, value: float, time_unit: str) -> str:
    """Return how many samples end in a second, after a comma, where the value and its unit say it."""
    rate = RATES.get(objective)
    return "" if rate is None else rate(value, time_unit)


def fullness(device: DeviceLoad) -> str:
    """Return the share of the memory limit that is used; empty without a limit."""
    if not device.memory_limit:
        return ""
    return percentage(device.memory / device.memory_limit)


def percentage(share: float) -> str:
    """Return a share in at most five characters."""
    return f"{share:.0%}" if share < 9.995 else ">999%"


def bar(share: float) -> str:
    """Return a bar whose length shows a share of at most 1."""
    return "█" * round(BAR_WIDTH * share)


def figure_table(wide: bool, titles: Sequence[str], figures: Sequence[str]) -> Table:
    """Return an empty table with columns for texts, then columns for figures."""
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold")
    for title in figures:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _title(name: str, devices: int) -> str:
    return name if devices == 1 else f"{name} x{devices}"


def _figures(device: DeviceLoad, share: float) -> dict[str, str]:
    """Return the cells of a device's line, by column."""
    times = sum(device.compute), sum(device.transfer_in), sum(device.transfer_out)
    texts = (
        *map(figure, (device.load, *times, device.sync)),
        *(amount(device.memory), fullness(device), str(device.nodes), f"{share:.0%}"),
    )
    fits = "-" if device.capacity is None else f"{device.capacity:,}"
    return dict(zip(FIGURES, texts, strict=True)) | {"per sample": amount(device.cache), "samples": fits}


def _figures_for(devices: Sequence[DeviceLoad]) -> Sequence[str]:
    """Return the columns of figures of a table of devices."""
    if any(device.cache for device in devices):
        return SERVING
    left_out = "load %" if any(device.sync > 0 for device in devices) else "sync"
    return [name for name in FIGURES if name != left_out]


# The critical path of operators that run one by one, as a table.


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
        names_within(names, LONG_NAMES if wide else SHORT_NAMES),
    )
    return [Text(cell) for cell in cells]


def _wait(entry: Run, before: Run | None) -> str:
    """Return the time between the previous operator and this one, and its cause."""
    since = before.finish if before is not None else 0.0
    length = entry.start - since
    if before is not None and before.device != entry.device:
        return f"{figure(length)} from {before.device}"
    return f"{figure(length)} idle" if length > ROUNDING * entry.start else "-"


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
        if number <= MOST_LINES // 2 or number > len(rows) - MOST_LINES // 2:
            table.add_row(
                "*" if row.critical else "", str(number), *_timetable_cells(schedule, row, line, wide)
            )
        elif number == MOST_LINES // 2 + 1:
            blank = [""] * (len(names) - 1)
            table.add_row("", *blank, f"... {len(rows) - 2 * (MOST_LINES // 2)} more lines")
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


def _timetable_cells(schedule: Schedule, row: TimetableRow, line: dict[int, int], wide: bool) -> list[Text]:
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
