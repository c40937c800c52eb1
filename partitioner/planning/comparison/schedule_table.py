"""A comparison of schedules as a text table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.tables import WIDE, bar, columns, figure_table, render
from partitioner.planning.comparison.ranked import Ranked, bubble_share, fullest_device
from partitioner.results.timeline_table import memory_share


def ranked_table(head: str, ranked: Sequence[Ranked], notes: Sequence[str], width: int | None = None) -> str:
    """Return a line for each schedule in the order given, then why some cannot be used, then notes."""
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("schedule",), ("makespan", "per sample", "bubble", "memory", "full"))
    table.add_column("device", overflow="fold")
    if wide:
        table.add_column("of the possible throughput", no_wrap=True)
    for one in ranked:
        table.add_row(*map(Text, _row(one, wide)))
    against = [f"{one.schedule} cannot be used: {one.against}" for one in ranked if one.against]
    return render([Text(head), table, *map(Text, [*against, *(f"note: {note}" for note in notes)])], width)


def _row(one: Ranked, wide: bool) -> list[str]:
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
        memory_share(timeline, fullest),
        timeline.devices[fullest],
        *([bar(timeline.efficiency)] if wide else []),
    ]
