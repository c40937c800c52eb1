"""The picture of a network in the colours of the parts of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partitioner.analysis.plots.graph import bends, folded
from partitioner.analysis.plots.layered import layered
from partitioner.analysis.reports.canvas import NEUTRAL, add_hover, new_figure
from partitioner.analysis.reports.parts import PlanPart
from partitioner.evaluation.costs import kind_times
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.text.figures import amount, figure
from partitioner.workload.graph import Floats, Graph, Ints

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure  # noqa: N812

MOST_NODES = 10_000  # that a picture shows, which take about 2 MB
HEIGHT = 560  # pixels
WIDE, HIGH = 0.78, 0.6  # of a node, where neighbours are 1 apart
TOOLS = "pan,wheel_zoom,box_zoom,reset,save"
PASSES = ("forward", "backward")
Column = NDArray[Any]


def network_figure(placed: Placed, parts: Sequence[PlanPart], home: Ints, unit: str) -> Figure:
    """Return the picture of a network, with a box for every forward and an ellipse for every backward node.

    Parameters
    ----------
    placed
        The placement; its graph is drawn.
    parts, home
        The parts of the plan, and the number of every node's part.
    unit
        The unit of times; empty if it is not known.
    """
    from bokeh.models import ColumnDataSource, Range1d

    place = folded(layered(placed.graph))
    ends = zip((place.min(axis=0) - 1).tolist(), (place.max(axis=0) + 1).tolist(), strict=True)
    across, up = (Range1d(*pair) for pair in ends)
    plot = new_figure("network", HEIGHT, TOOLS, active_scroll="wheel_zoom", x_range=across, y_range=up)
    plot.axis.visible = plot.grid.visible = False
    _draw_edges(plot, placed.graph, place, home)
    shown = _shown(placed, parts, home, unit)
    colours = _texts([part.colour for part in parts])[home]
    columns = shown | {"x": _reals(place[:, 0]), "y": _reals(place[:, 1]), "colour": colours}
    backward = placed.graph.backward
    nodes = []
    for among, draw, look in ((~backward, plot.rect, {"border_radius": 3}), (backward, plot.ellipse, {})):
        if among.any():
            source = ColumnDataSource({name: values[among] for name, values in columns.items()})
            nodes.append(draw("x", "y", WIDE, HIGH, color="colour", line_width=0, source=source, **look))
    add_hover(plot, nodes, tuple(shown))
    return plot


def _shown(placed: Placed, parts: Sequence[PlanPart], home: Ints, unit: str) -> dict[str, Column]:
    """Return what the pointer shows of every node, by title."""
    graph = placed.graph
    time = kind_times(placed) * placed.time_factor[placed.device]
    sent = np.zeros(len(graph))
    np.maximum.at(sent, graph.edges[:, 0], graph.cost)
    found = {"node": _texts(graph.names), "on": _texts([part.place for part in parts])[home]}
    if graph.backward.any():
        found["pass"] = _texts(PASSES)[graph.backward.astype(int)]
    if graph.layer_labels:
        found["layer"] = _texts([*map(str, graph.layer_labels), "none"])[graph.layer]
    for title, values in (("time", time), ("transfer", sent)):
        found[title] = _texts([f"{figure(value)} {unit}".rstrip() for value in values.tolist()])
    memory = graph.size + graph.parts.sum(axis=0)
    return found | {"memory": _texts([f"{amount(value)}B" for value in memory.tolist()])}


def _texts(values: Sequence[str]) -> Column:
    return np.array(values, dtype=object)


def _reals(values: Floats) -> Column:
    return values.astype(np.float32)


def _draw_edges(plot: Figure, graph: Graph, place: Floats, home: Ints) -> None:
    """Draw the edges as curves; those between parts are stronger."""
    start, end = place[graph.edges[:, 0]], place[graph.edges[:, 1]]
    middle = (start + end) / 2
    middle[:, 1] += 2 * bends(graph, place)
    between = home[graph.edges[:, 0]] != home[graph.edges[:, 1]]
    for among, width, alpha in ((~between, 0.8, 0.55), (between, 1.4, 1.0)):
        ends = np.concatenate((start, end, middle), axis=1)[among].T
        columns = [_reals(values) for values in ends]
        plot.quadratic(*columns, line_color=NEUTRAL, line_width=width, line_alpha=alpha)
