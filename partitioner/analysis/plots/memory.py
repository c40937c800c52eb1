"""A picture of the memory of every device over time, with its limit."""

from __future__ import annotations

from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from partitioner.analysis.plots.canvas import head, label_rows, row_axes
from partitioner.analysis.plots.colours import COMPUTE, OVER, ink
from partitioner.analysis.plots.order import pipeline_order
from partitioner.base.argument_types import require_type
from partitioner.evaluation.text.figures import amount
from partitioner.results.timeline_table import row_titles
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Bools, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 10.0
LANE, FLOOR = 0.82, 0.42
TOO_HIGH = 4.0
LINE = 100  # characters of a note in a line


def plot_memory(timeline: Timeline, ax: Axes | None = None) -> Axes:
    """Draw the memory of every device over time, each in a row, with its limit as a line; return the axes.

    Parameters
    ----------
    timeline
        The timeline of a simulated schedule.
    ax
        The axes to draw on; by default those of a new figure. Rows are those of :func:`plot_timeline`.

    Returns
    -------
    Axes
        The axes, with a filled area for each device, in another colour if the device exceeds its limit. All
        rows have the same scale. A limit of more than four times the highest peak is not drawn, but written
        at the right end of the row. Notes of the timeline are written below the axis.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    """
    require_type("timeline", timeline, Timeline)
    order = pipeline_order(timeline)
    titles = row_titles(timeline)
    ax = row_axes(ax, WIDTH, [titles[i] for i in order.tolist()])
    limit, peak = timeline.memory_limit[order], timeline.peak_memory[order]
    drawn, scale = lanes(peak, limit)
    ax.set_xlim(0, timeline.makespan or 1.0)
    ax.set_xlabel("\n".join(["time", *chain.from_iterable(wrap(note, LINE) for note in timeline.notes)]))
    _fill(ax, timeline, order, scale)
    _draw_limits(ax, limit, drawn, scale)
    label_rows(ax, [peak_words(*pair) for pair in zip(peak.tolist(), limit.tolist(), strict=True)])
    name = f"{timeline.schedule}, {timeline.table.microbatches} microbatches"
    head(ax, f"{name}: memory, at most {amount(peak.max(initial=0.0))}")
    return ax


def lanes(peak: Floats, limit: Floats) -> tuple[Bools, float]:
    """Return which limits are drawn, shape (d,), and the height of a unit of memory in rows 1 apart.

    A limit of more than :data:`TOO_HIGH` times the highest peak is not drawn.
    """
    drawn = limit <= TOO_HIGH * peak.max(initial=0.0)
    return drawn, LANE / (max(peak.max(initial=0.0), limit[drawn].max(initial=0.0)) or 1.0)


def peak_words(peak: float, limit: float) -> str:
    """Return the peak of a device and its limit, if it has one."""
    return f"{amount(peak)} of {amount(limit)}" if np.isfinite(limit) else amount(peak)


def _fill(ax: Axes, timeline: Timeline, order: Ints, scale: float) -> None:
    fits = timeline.fits
    labels = {True: "memory", False: "memory, more than the device has"}
    for row, device in enumerate(order.tolist()):
        memory, fit = timeline.memory[device], bool(fits[device])
        ax.fill_between(
            np.append(memory.time, timeline.makespan),
            row + FLOOR,
            row + FLOOR - scale * np.append(memory.used, memory.used[-1:]),
            step="post",
            color=COMPUTE if fit else OVER,
            linewidth=0,
            label=labels.pop(fit, None),
        )
        ax.axhline(row + FLOOR, color=COMPUTE if fit else OVER, linewidth=0.5)


def _draw_limits(ax: Axes, limit: Floats, drawn: Bools, scale: float) -> None:
    rows = np.flatnonzero(drawn)
    if len(rows):
        height = rows + FLOOR - scale * limit[rows]
        left, right = ax.get_xlim()
        ax.hlines(height, left, right, colors=[ink()], linestyles="--", linewidths=1.2, label="limit")
