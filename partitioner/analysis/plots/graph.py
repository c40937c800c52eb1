"""A picture of the split graph, with a colour for each device (paper, Figure 10)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.analysis.plots.canvas import POINTS, new_axes
from partitioner.analysis.plots.colours import device_look, ink
from partitioner.analysis.plots.layered import layered
from partitioner.base.argument_types import check_word, require_items, require_mapping, require_type
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.text.figures import figure
from partitioner.workload.graph import Floats, Graph, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.typing import ColorType

LAYOUTS = ("auto", "dot", "layered")
ACROSS, UP, ASPECT, GAP = 0.12, 0.16, 1.8, 2.0
LEGEND, MARGIN = 2.3, 0.8
SMALLEST, LARGEST = (5.0, 3.2), (30.0, 18.0)
CURVE = np.linspace(0, 1, 13)
COLUMN, LISTED = 24, 72


def plot_graph(
    graph: Graph,
    placement: Mapping[Any, str],
    ax: Axes | None = None,
    *,
    loads: Sequence[DeviceLoad] = (),
    layout: str = "auto",
) -> Axes:
    """Draw a graph with every node in the colour of its device, and return the axes.

    Parameters
    ----------
    graph
        The graph.
    placement
        The name of a device for every node id.
    ax
        The axes to draw on; by default those of a new figure.
    loads
        The loads of a plan or an evaluation, which the legend then shows.
    layout
        ``"dot"``: by Graphviz; ``"layered"``: by longest paths, with the backward pass below the forward
        pass, see :func:`partitioner.analysis.plots.layered.layered`; ``"auto"``: by Graphviz if it is
        installed, the graph has only one pass, and Graphviz takes at most 10 seconds; else ``"layered"``.

    Returns
    -------
    Axes
        The axes, with a scatter for each device and pass: forward and backward nodes differ in shape. Edges
        between devices are darker. A long graph is folded to several lines, one below the other, of which
        every second one runs backwards.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    WorkloadError
        If a node is not placed.
    OptionError
        If the layout is unknown, or is ``"dot"`` and Graphviz is not installed, fails or takes too long.
    """
    require_type("graph", graph, Graph)
    require_mapping("placement", placement, "must be a mapping from node id to device name")
    flaws = [
        Flaw(f"node {shown(node)}", "", "", "is not placed on any device")
        for node in graph.ids
        if node not in placement
    ]
    if flaws:
        raise WorkloadError(flaws)
    place = folded(_places(graph, layout))
    width, height = _extent(place)
    names, device = _devices(graph, placement)
    legend = LEGEND * _columns(min(len(names), LISTED))
    size = np.clip((width * ACROSS + MARGIN, height * UP + MARGIN), SMALLEST, LARGEST)
    ax = new_axes(ax, size[0] + legend, size[1])
    ax.set_axis_off()
    _draw_edges(ax, graph, place, device)
    _draw_nodes(ax, graph, place, device, len(names))
    _legend(ax, graph, _labels(names, device, loads))
    return ax


def _places(graph: Graph, layout: str) -> Floats:
    check_word("layout", layout, LAYOUTS)
    one_pass = not graph.backward.any() or bool(graph.backward.all())
    found = by_dot(graph) if layout == "dot" or (layout == "auto" and one_pass) else None
    if found is None and layout == "dot":
        raise OptionError("layout = 'dot': Graphviz's program dot is not installed, failed or took too long")
    return layered(graph) if found is None else found


def _extent(place: Floats) -> tuple[float, float]:
    width, height = np.ptp(place, axis=0).tolist() if len(place) else (0.0, 0.0)
    return width, height


def folded(place: Floats) -> Floats:
    """Return positions, shape (n, 2), folded to lines one below the other, every second one backwards.

    Examples
    --------
    >>> folded(np.array([[0.0, 0.0], [1.0, 0.0]]))
    array([[0., 0.],
           [1., 0.]])
    """
    width, height = _extent(place)
    lines = max(1, round(float(np.sqrt(width * ACROSS / (ASPECT * UP * (height + GAP))))))
    length = (width + 1) / lines
    x = place[:, 0] - place[:, 0].min(initial=np.inf)
    line = np.floor(x / length)
    x = x - line * length
    x = np.where(line % 2 == 1, length - 1 - x, x)
    return np.stack((x, place[:, 1] - line * (height + GAP)), axis=1)


def _devices(graph: Graph, placement: Mapping[Any, str]) -> tuple[list[str], Ints]:
    """Return the devices in use, in the order of the mean depth of their nodes, and each node's device."""
    names, device = np.unique([placement[node] for node in graph.ids], return_inverse=True)
    depth = layered(graph)[:, 0]
    mean = np.bincount(device, depth, len(names)) / np.bincount(device, minlength=len(names))
    order = np.argsort(mean, kind="stable")
    return [str(names[i]) for i in order], np.argsort(order)[device]


def _labels(names: Sequence[str], device: Ints, loads: Sequence[DeviceLoad]) -> list[str]:
    """Return the legend's text for each device."""
    for entry in require_items("loads", loads):
        require_type("loads", entry, DeviceLoad)
    load = {entry.name: f"load {figure(entry.load)}" for entry in loads}
    count = np.bincount(device, minlength=len(names)).tolist()
    return [f"{name}: {load.get(name, f'{count[i]} nodes')}" for i, name in enumerate(names)]


def _draw_edges(ax: Axes, graph: Graph, place: Floats, device: Ints) -> None:
    from matplotlib.collections import LineCollection

    if not len(graph.edges):
        return
    lines = _curves(graph, place)
    cut = device[graph.edges[:, 0]] != device[graph.edges[:, 1]]
    for among, width, alpha in ((~cut, 0.5, 0.35), (cut, 0.8, 0.8)):
        ax.add_collection(
            LineCollection(list(lines[among]), colors=[ink()], linewidths=width, alpha=alpha, zorder=1)
        )


def _curves(graph: Graph, place: Floats) -> Floats:
    """Return the edges as curves, shape (m, points, 2); edges over several layers are bent."""
    start, end = place[graph.edges[:, 0]], place[graph.edges[:, 1]]
    t = CURVE[:, None]
    straight = start[:, None] * (1 - t) + end[:, None] * t
    straight[:, :, 1] += bends(graph, place)[:, None] * (4 * CURVE * (1 - CURVE))
    return np.asarray(straight)


def bends(graph: Graph, place: Floats) -> Floats:
    """Return how far the middle of each edge is above the straight line between its nodes, shape (m,)."""
    length = np.abs(place[graph.edges[:, 1], 0] - place[graph.edges[:, 0], 0])
    bend = np.minimum(3.0, 0.5 * np.sqrt(np.maximum(0, length - 1.5)))
    passes = graph.backward[graph.edges]
    return np.asarray(bend * np.where(passes.all(axis=1), -1.0, np.where(passes.any(axis=1), 0.0, 1.0)))


def _draw_nodes(ax: Axes, graph: Graph, place: Floats, device: Ints, devices: int) -> None:
    size = _marker(ax, place, devices)
    for number in range(devices):
        color, *shapes = device_look(number)
        for backward, shape in enumerate(shapes):
            among = (device == number) & (graph.backward == bool(backward))
            if among.any():
                ax.scatter(
                    place[among, 0],
                    place[among, 1],
                    s=size**2,
                    c=color,
                    marker=shape,
                    edgecolors=[ink()],
                    linewidths=0.05 * size,
                    zorder=2,
                )


def _marker(ax: Axes, place: Floats, devices: int) -> float:
    """Return the width of nodes in points such that they do not touch, next to the devices' legend."""
    box = ax.get_window_extent()
    size = np.array((box.width, box.height)) / ax.figure.dpi
    size[0] = max(0.3 * size[0], 1.2 * size[0] - LEGEND * _columns(min(devices, LISTED)))
    gap = POINTS * size / (np.array(_extent(place)) + 1)
    return float(np.clip(0.7 * gap.min(), 2.5, 11.0))


def _legend(ax: Axes, graph: Graph, labels: Sequence[str]) -> None:
    """Write the legend of the devices, and of the shapes of two passes, to the right of the picture."""
    looks: list[tuple[ColorType, str, str]]
    looks = [(*device_look(i)[:2], label) for i, label in enumerate(labels[:LISTED])]
    if graph.backward.any() and not graph.backward.all():
        _, *shapes = device_look(0)
        looks += [(ink(), shape, name) for shape, name in zip(shapes, ("forward", "backward"), strict=True)]
    hidden = len(labels) - LISTED
    looks += [("none", "o", f"and {hidden} more devices")] if hidden > 0 else []
    ax.legend(
        handles=[_handle(*look) for look in looks],
        loc="upper left",
        bbox_to_anchor=(1, 1),
        ncols=_columns(len(looks)),
        frameon=False,
        fontsize="small",
    )


def _columns(entries: int) -> int:
    return -(-entries // COLUMN)


def _handle(color: ColorType, shape: str, label: str) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, marker=shape, linestyle="none", label=label)


# The layout of a graph by the program ``dot`` of Graphviz, if it is installed.

SECONDS = 10.0
ARGUMENTS = ("-Tplain", "-Grankdir=LR", "-Granksep=1", "-Gnodesep=1", "-Gsplines=false", "-Nshape=point")


def by_dot(graph: Graph) -> Floats | None:
    """Return positions of the nodes from left to right, about 1 apart, shape (n, 2).

    The result is None if the program is not installed, fails, or takes longer than `SECONDS`.
    """
    program = shutil.which("dot")
    if program is None:
        return None
    text = "\n".join(["digraph {", *map(str, range(len(graph))), *_edges(graph), "}"])
    try:
        done = subprocess.run(
            [program, *ARGUMENTS], input=text, capture_output=True, text=True, timeout=SECONDS, check=True
        )
        return _positions(done.stdout, len(graph))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _edges(graph: Graph) -> list[str]:
    return [f"{source} -> {target}" for source, target in graph.edges.tolist()]


def _positions(answer: str, count: int) -> Floats:
    """Return the positions in lines such as ``node 7 1.5 0.25 ...``; raise if a node has no line."""
    place = np.full((count, 2), np.nan)
    for line in answer.splitlines():
        words = line.split()
        if words[:1] == ["node"]:
            place[int(words[1])] = float(words[2]), float(words[3])
    if not np.isfinite(place).all():
        raise ValueError("a node has no position")
    return place
