"""Timelines and comparisons of schedules as text for people."""

from __future__ import annotations

import math

from rich.table import Table
from rich.text import Text

from partitioner.comparison.schedules import Comparison, Ranked, bubble_share, fullest_device
from partitioner.figures import amount, figure
from partitioner.report import BAR_WIDTH, WIDE, columns, render
from partitioner.schedule import Timeline


def timeline_table(timeline: Timeline, width: int | None = None) -> str:
    """A timeline as text: its times, then a line for each device in the order of its first stage."""
    head = (
        f"{timeline.schedule}, {timeline.table.microbatches} microbatches: {timeline.makespan:.6g}, "
        f"{timeline.time_per_sample:.6g} per sample\n"
        f"the largest load is {timeline.bound:.6g} per sample: "
        f"{timeline.efficiency:.1%} of the possible throughput"
    )
    tight = [
        f"{name} needs more memory than it has"
        for name, fits in zip(timeline.devices, timeline.fits.tolist(), strict=True)
        if not fits
    ]
    notes = [f"note: {note}" for note in timeline.notes]
    return render([Text(head), _device_table(timeline, width), *map(Text, [*tight, *notes])], width)


def comparison_table(comparison: Comparison, width: int | None = None) -> str:
    """A comparison as text: a line for each schedule, best first, then why some cannot be used."""
    best = comparison.best
    verdict = "no schedule can be used" if best is None else f"{best.schedule} is the fastest"
    head = (
        f"{comparison.microbatches} microbatches: {verdict}; "
        f"no schedule takes less than {comparison.bound:.6g} per sample"
    )
    wide = columns(width) >= WIDE
    table = _table(wide, ("schedule",), ("makespan", "per sample", "bubble", "memory", "full"))
    table.add_column("device", overflow="fold")
    if wide:
        table.add_column("of the possible throughput", no_wrap=True)
    for one in comparison.ranked:
        table.add_row(*map(Text, _ranked_row(one, wide)))
    against = [f"{one.schedule} cannot be used: {one.against}" for one in comparison.ranked if one.against]
    notes = [f"note: {note}" for note in comparison.notes]
    return render([Text(head), table, *map(Text, [*against, *notes])], width)


def _device_table(timeline: Timeline, width: int | None) -> Table:
    wide = columns(width) >= WIDE
    table = _table(wide, ("device", "stages"), ("busy", "bubble", "memory", "full", "in flight"))
    if wide:
        table.add_column("busy of the makespan", no_wrap=True)
    busy, bubble = timeline.busy.tolist(), timeline.bubble.tolist()
    stages = _stages(timeline)
    for i in sorted(range(len(stages)), key=lambda i: (not stages[i], stages[i][:1])):
        cells = (
            *(timeline.devices[i], _ranges(stages[i]), figure(busy[i]), f"{bubble[i]:.1%}"),
            *(amount(timeline.peak_memory[i]), _fullness(timeline, i), str(timeline.in_flight[i])),
        )
        table.add_row(*map(Text, cells), *([_bar(1 - bubble[i])] if wide else []))
    return table


def _table(wide: bool, titles: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold")
    for title in figures:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _ranked_row(one: Ranked, wide: bool) -> list[str]:
    timeline = one.timeline
    title = one.schedule if one.feasible else f"({one.schedule})"
    if timeline is None:
        return [title]
    fullest = fullest_device(timeline)
    return [
        title,
        figure(timeline.makespan),
        figure(timeline.time_per_sample),
        f"{bubble_share(timeline):.1%}",
        amount(timeline.peak_memory[fullest]),
        _fullness(timeline, fullest),
        timeline.devices[fullest],
        *([_bar(timeline.efficiency)] if wide else []),
    ]


def _stages(timeline: Timeline) -> list[list[int]]:
    """The stages of each device; none for a replica that no sample comes to."""
    start = timeline.table.start
    return [
        sorted(set(timeline.table.stage[start[i] : start[i + 1]].tolist()))
        for i in range(len(timeline.devices))
    ]


def _ranges(stages: list[int]) -> str:
    """Stages counted from 1, as ``1, 4-6``."""
    runs: list[list[int]] = []
    for stage in stages:
        if runs and stage == runs[-1][1] + 1:
            runs[-1][1] = stage
        else:
            runs.append([stage, stage])
    return ", ".join(f"{a + 1}" if a == b else f"{a + 1}-{b + 1}" for a, b in runs)


def _fullness(timeline: Timeline, device: int) -> str:
    limit = float(timeline.memory_limit[device])
    if not 0 < limit < math.inf:
        return ""
    share = timeline.peak_memory[device] / limit
    return f"{share:.0%}" if share < 9.995 else ">999%"


def _bar(share: float) -> str:
    return "█" * round(BAR_WIDTH * share)
