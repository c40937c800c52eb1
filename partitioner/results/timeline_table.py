"""Timelines as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from rich.table import Table
from rich.text import Text

from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.names import ranges
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, percentage, render
from partitioner.results.rates import rates_in_words, rates_of
from partitioner.schedule import Timeline
from partitioner.workload.extras import Extras


def rates_of_timeline(timeline: Timeline, extras: Extras) -> dict[str, float]:
    """Return samples and tokens a second, seconds a batch, and operations a second of a device, if known."""
    devices = sum(map(len, timeline.groups))
    held = float(timeline.peak_memory.max())
    return rates_of(extras, timeline.table.microbatches, timeline.makespan, devices, True, held)


def timeline_table(
    timeline: Timeline, width: int | None = None, *, rates: Mapping[str, float] = MappingProxyType({})
) -> str:
    """Return a timeline as text: its times and rates, then a line for each device by its first stage.

    Devices that run the same passes together have one line, with the memory of each.
    """
    head = (
        f"{timeline.schedule}, {timeline.table.microbatches} microbatches: {timeline.makespan:.6g}, "
        f"{timeline.time_per_sample:.6g} per sample\n"
        f"the largest load is {timeline.bound:.6g} per sample: "
        f"{timeline.efficiency:.1%} of the possible throughput" + f"\n{rates_in_words(rates)}" * bool(rates)
    )
    tight = [
        f"{name} needs more memory than it has"
        for name, fits in zip(row_titles(timeline), timeline.fits.tolist(), strict=True)
        if not fits
    ]
    notes = [f"note: {note}" for note in timeline.notes]
    return render([Text(head), _device_table(timeline, width), *map(Text, [*tight, *notes])], width)


def row_titles(timeline: Timeline) -> list[str]:
    """Return the devices of every row of a timeline in short, such as ``gpu2-3`` for a pair."""
    return [", ".join(ranges(group)) for group in timeline.groups]


def _device_table(timeline: Timeline, width: int | None) -> Table:
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("device", "stages"), ("busy", "bubble", "memory", "full", "in flight"))
    if wide:
        table.add_column("busy of the makespan", no_wrap=True)
    busy, bubble = timeline.busy.tolist(), timeline.bubble.tolist()
    stages, titles = _stages(timeline), row_titles(timeline)
    for i in sorted(range(len(stages)), key=lambda i: (not stages[i], stages[i][:1])):
        numbers = ", ".join(ranges(str(stage + 1) for stage in stages[i]))
        cells = (
            *(titles[i], numbers, figure(busy[i]), f"{bubble[i]:.1%}"),
            *(amount(timeline.peak_memory[i]), memory_share(timeline, i), str(timeline.in_flight[i])),
        )
        table.add_row(*map(Text, cells), *([bar(1 - bubble[i])] if wide else []))
    return table


def memory_share(timeline: Timeline, device: int) -> str:
    """Return the share of a device's memory limit that is used; empty without a limit."""
    limit = float(timeline.memory_limit[device])
    return percentage(timeline.peak_memory[device] / limit) if 0 < limit < math.inf else ""


def _stages(timeline: Timeline) -> list[list[int]]:
    """Return the stages of each device; none for a replica that runs no pass."""
    start = timeline.table.start
    return [
        sorted(set(timeline.table.stage[start[i] : start[i + 1]].tolist()))
        for i in range(len(timeline.devices))
    ]
