"""What stands in a picture: texts and their boxes, and whether one could read them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

CONTRAST = 0.35


def laid_out(ax: Axes) -> Figure:
    """The figure of the axes, after its layout."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def texts(ax: Axes) -> list[Text]:
    """All texts of a figure that are drawn and not empty, after its layout."""
    from matplotlib.text import Text

    figure = laid_out(ax)
    found = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    inside = figure.bbox
    return [
        text
        for text in found
        if text.get_visible()
        and text.get_text().strip()
        and _is_shown(ax, text)
        and text.get_window_extent().overlaps(inside)
    ]


def _is_shown(ax: Axes, text: Text) -> bool:
    """Ticks beyond the limits of an axis, and those of hidden axes, are not drawn."""
    for axis, limits, place in ((ax.xaxis, ax.get_xlim(), 0), (ax.yaxis, ax.get_ylim(), 1)):
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        if any(text in (tick.label1, tick.label2) for tick in ticks):
            return ax.axison and min(limits) <= text.get_position()[place] <= max(limits)
        if text is axis.label:
            return ax.axison
    return True


def overlapping(ax: Axes) -> list[tuple[str, str]]:
    """Pairs of texts that lie on one another."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(ax)]
    return [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if first.overlaps(second)]


def outside(ax: Axes) -> list[str]:
    """Texts that reach over the edge of the figure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.bbox.width, figure.bbox.height
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(ax)]
    return [t for t, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height]


def faint(ax: Axes) -> list[str]:
    """Texts on the background whose colour is too close to it."""
    from matplotlib.colors import to_rgb

    figure = ax.get_figure(root=True)
    assert figure is not None
    background = np.mean(to_rgb(figure.get_facecolor()))
    near = [text for text in texts(ax) if abs(np.mean(to_rgb(text.get_color())) - background) < CONTRAST]
    return [text.get_text() for text in near]


def assert_readable(ax: Axes) -> None:
    """No text lies on another one, leaves the figure, or has the colour of the background."""
    assert len(texts(ax)) > 2
    assert overlapping(ax) == [] and outside(ax) == [] and faint(ax) == []
