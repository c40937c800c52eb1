"""Empty figures of bokeh in the style of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable
from partitioner.workload.graph import Floats

if TYPE_CHECKING:
    from bokeh.models import GlyphRenderer, Range1d, UIElement
    from bokeh.plotting import figure as Figure  # noqa: N812

ROW, FRAME, HIGHEST = 22, 70, 900  # pixels
THICK = 0.72  # of a row
LEAST_LABEL = 11  # pixels between two labels of rows
NEUTRAL = "#8b93a1"  # legible on light and on dark backgrounds

LEGEND = """
:host { background-color: transparent !important; }
.bk-label { color: var(--faint) !important; }
"""


def require_bokeh() -> None:
    """Raise if bokeh is not installed.

    Raises
    ------
    BackendUnavailable
        With the command that installs it.
    """
    try:
        import bokeh.plotting  # noqa: F401
    except ImportError as error:
        raise BackendUnavailable(f"reports need bokeh: {remedy('report')}") from error


def new_figure(name: str, height: int, tools: str, **options: Any) -> Figure:
    """Return an empty figure that takes the width of its page; colours come from the page's style."""
    from bokeh.plotting import figure

    plot = figure(name=name, height=height, sizing_mode="stretch_width", tools=tools, min_border=0, **options)
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    return plot


def row_figure(name: str, rows: Sequence[str], end: float = 1.0, x_range: Range1d | None = None) -> Figure:
    """Return a figure with a named row for each device, at heights 0, 1, 2 and so on from the top down.

    The horizontal axis goes from 0 to `end`, or is `x_range`, which figures share.
    """
    from bokeh.models import FixedTicker, Range1d

    height = min(HIGHEST, FRAME + ROW * len(rows))
    every = -(-LEAST_LABEL * len(rows) // (height - FRAME))
    plot = new_figure(
        name,
        height,
        "pan,wheel_zoom,box_zoom,reset,save",
        x_range=Range1d(0, end or 1.0, bounds=(0, end or 1.0)) if x_range is None else x_range,
        y_range=Range1d(len(rows) - 0.45, -0.55, bounds=(-0.55, len(rows) - 0.45)),
    )
    plot.yaxis.ticker = FixedTicker(ticks=list(range(0, len(rows), every)))
    plot.yaxis.major_label_overrides = dict(enumerate(rows))
    plot.ygrid.visible = False
    return plot


def stacked_bars(
    plot: Figure,
    parts: Mapping[str, Floats],
    colours: Mapping[str, str],
    shown: Mapping[str, Sequence[Any]],
) -> list[GlyphRenderer[Any]]:
    """Draw the parts of every row one after the other; `shown` is what the pointer shows of a row."""
    right, bars = np.cumsum(list(parts.values()), axis=0), []
    rows = np.arange(right.shape[1])
    for (name, length), till in zip(parts.items(), right, strict=True):
        data = {**shown, "left": till - length, "right": till, "row": rows}
        look = {"color": colours[name], "line_width": 0, "legend_label": name}
        bars.append(plot.hbar("row", left="left", right="right", height=THICK, source=data, **look))
    return bars


def add_hover(plot: Figure, renderers: Sequence[GlyphRenderer[Any]], titles: Sequence[str]) -> None:
    """Let the pointer show the columns of these names, whose texts are never read as markup."""
    from bokeh.models import HoverTool

    shown = [(title, f"@{{{title}}}") for title in titles]
    plot.add_tools(HoverTool(renderers=list(renderers), tooltips=shown, point_policy="follow_mouse"))


def legend_above(plot: Figure, entries: int = 4) -> None:
    """Move the legend above the figure, `entries` in a line; a click on an entry hides what it names."""
    legend = plot.legend[0]
    legend.orientation, legend.ncols = "horizontal", entries
    legend.click_policy = "hide"
    legend.border_line_color = None
    legend.margin = legend.padding = 0
    legend.stylesheets = [LEGEND]
    plot.add_layout(legend, "above")


def draw_span(plot: Figure, place: float) -> None:
    """Draw a dashed vertical line in the page's colour of text."""
    from bokeh.models import Span

    ink = ":host { --bk-line-color: var(--ink); }"
    look = {"line_width": 2, "line_dash": "dashed", "stylesheets": [ink]}
    plot.add_layout(Span(location=place, dimension="height", **look))


def with_unit(title: str, unit: str) -> str:
    """Return the title of an axis with the unit of its values, if it is known.

    Examples
    --------
    >>> with_unit("time", "ms"), with_unit("time", "")
    ('time (ms)', 'time')
    """
    return f"{title} ({unit})" if unit else title


def stacked(*plots: Figure) -> UIElement:
    """Return figures one below the other, which may share an axis."""
    from bokeh.layouts import column

    return column(*plots, sizing_mode="stretch_width")
