"""Axes to draw on, with a row for each device, in matplotlib's current style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitioner.base.argument_types import require_type
from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

ROW, FRAME, HIGHEST = 0.34, 1.5, 60.0
SMALLEST_TEXT = 4.0
POINTS = 72


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    WorkloadError
        If `ax` is neither None nor matplotlib's Axes.
    """
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes as MatplotlibAxes
    except ImportError as error:
        raise BackendUnavailable(f"pictures need matplotlib: {remedy('plots')}") from error
    if ax is not None:
        require_type("ax", ax, MatplotlibAxes, "must be matplotlib's Axes, or None")
        return ax
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def row_axes(ax: Axes | None, width: float, names: Sequence[str]) -> Axes:
    """Return axes with a named row for each device, at heights 0, 1, 2 and so on from the top down."""
    ax = new_axes(ax, width, min(HIGHEST, FRAME + ROW * len(names)))
    size = text_size(ax, len(names))
    every = max(1, round(SMALLEST_TEXT / size))
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_yticks(range(0, len(names), every), names[::every], fontsize=max(size, SMALLEST_TEXT))
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def text_size(ax: Axes, rows: int) -> float:
    """Return the size in points of texts that fit one below the other, one in each row."""
    from matplotlib import rcParams

    height = ax.get_window_extent().height / ax.figure.dpi * POINTS
    return min(float(rcParams["font.size"]), 0.7 * height / rows)


def label_rows(ax: Axes, texts: Sequence[str]) -> None:
    """Write a text at the right end of each row."""
    size = text_size(ax, len(texts))
    for row in range(len(texts)) if size >= SMALLEST_TEXT else ():
        ax.annotate(
            texts[row],
            (1, row),
            xycoords=ax.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=size,
            annotation_clip=False,
        )


def head(ax: Axes, title: str, handles: Sequence[Artist] | None = None) -> None:
    """Write the title above the axes, and below it the legend of `handles`, or of all that has a label."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    entries = len(handles)
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=max(1, entries),
        frameon=False,
        fontsize="small",
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.5,
        columnspacing=1.2,
    )
    ax.set_title(title, loc="left", fontsize="medium", pad=22 if entries else 6)
