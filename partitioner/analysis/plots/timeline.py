"""The pipeline diagram: a picture of what every device runs when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from partitioner.analysis.plots.canvas import head, row_axes
from partitioner.analysis.plots.colours import PARTS as PART_COLOURS
from partitioner.analysis.plots.colours import PASSES, mixed, on_top
from partitioner.analysis.plots.order import pipeline_order
from partitioner.base.argument_types import require_type
from partitioner.evaluation.text.figures import figure
from partitioner.results.timeline_table import row_titles
from partitioner.schedule.table import DIRECTIONS
from partitioner.schedule.timeline import PARTS, Timeline
from partitioner.workload.graph import Bools, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

COMPUTE = PARTS.index("compute")
PASS_NAMES = {"F": "forward", "B": "backward", "I": "backward, of inputs", "W": "backward, of weights"}
PART_NAMES = {"in": "transfer in", "out": "transfer out", "sync": "exchange of weights"}
IN_TURN = {"compute": (-0.4, 0.4), "in": (-0.2, 0.4), "out": (-0.2, 0.4), "sync": (-0.2, 0.4)}
AT_ONCE = {"compute": (-0.42, 0.08), "in": (0.1, 0.25), "out": (0.27, 0.42), "sync": (0.1, 0.42)}
NARROWEST, WIDEST, PASS_WIDTH = 9.0, 22.0, 0.13
LIGHTER = 0.45


class Group(NamedTuple):
    """Boxes of equal style: the pass that each belongs to, shape (n,), and its extent, shape (n, 4)."""

    label: str
    colour: str
    hatch: str
    passes: Ints
    extent: Floats


def plot_timeline(timeline: Timeline, ax: Axes | None = None) -> Axes:
    """Draw a schedule with a row for each device and a box for each pass, and return the axes.

    Parameters
    ----------
    timeline
        The timeline of a simulated schedule.
    ax
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes
        The axes, with a collection of boxes for each kind of pass and transfer. The number of the microbatch
        is written into boxes that are large enough; in a window, zooming in shows more of them. If a device
        holds several stages, later ones are lighter.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    """
    require_type("timeline", timeline, Timeline)
    passes = int(np.diff(timeline.table.start).max(initial=0))
    width = float(np.clip(2 + PASS_WIDTH * passes, NARROWEST, WIDEST))
    order = pipeline_order(timeline)
    titles = row_titles(timeline)
    ax = row_axes(ax, width, [titles[i] for i in order.tolist()])
    ax.set_xlim(0, timeline.makespan or 1.0)
    ax.set_xlabel("time")
    found = boxes(timeline, np.argsort(order)[timeline.table.row])
    groups = [group for group in found if len(group.passes)]
    for group in groups:
        _draw(ax, timeline, group)
    _write(ax, timeline, [group for group in groups if group.label in PASS_NAMES.values()])
    head(ax, timeline_title(timeline), [_legend_entry(ax, group) for group in groups])
    return ax


def timeline_title(timeline: Timeline) -> str:
    """Return the schedule, its time for a sample and its bubble in a line."""
    paused = float(timeline.bubble.mean()) if timeline.devices else 0.0
    time, load = figure(timeline.time_per_sample), figure(timeline.bound)
    name = f"{timeline.schedule}, {timeline.table.microbatches} microbatches"
    return f"{name}: {time} per sample (largest load {load}), bubble {paused:.0%}"


def boxes(timeline: Timeline, row: Ints) -> Iterator[Group]:
    """Yield the boxes of all parts that take time, by kind; `row` is the row of each pass."""
    bands = AT_ONCE if _overlap(timeline) else IN_TURN
    for number, letter in enumerate(DIRECTIONS):
        among = timeline.table.direction == number
        yield _group(timeline, row, COMPUTE, among, bands["compute"], PASS_NAMES[letter], PASSES[letter], "")
    everything = np.ones(len(timeline.table.stage), dtype=bool)
    for part, label in PART_NAMES.items():
        hatch = "////" if part == "sync" else ""
        column = PARTS.index(part)
        yield _group(timeline, row, column, everything, bands[part], label, PART_COLOURS[part], hatch)


def _group(
    timeline: Timeline,
    row: Ints,
    column: int,
    among: Bools,
    band: tuple[float, float],
    label: str,
    colour: str,
    hatch: str,
) -> Group:
    begin, end = timeline.begin[:, column], timeline.end[:, column]
    found = np.flatnonzero(among & (end > begin))
    height = row[found]
    extent = np.stack((begin[found], end[found], height + band[0], height + band[1]), axis=1)
    return Group(label, colour, hatch, found, extent)


def _overlap(timeline: Timeline) -> bool:
    """Whether parts of passes on a device ever overlap in time."""
    busy = np.clip(timeline.end - timeline.begin, 0, None)
    total = np.bincount(timeline.table.row, busy.sum(axis=1), len(timeline.devices))
    return bool((total > timeline.busy * (1 + 1e-9)).any())


def _draw(ax: Axes, timeline: Timeline, group: Group) -> None:
    from matplotlib.collections import PolyCollection

    corners = group.extent[:, [0, 2, 1, 2, 1, 3, 0, 3]].reshape(-1, 4, 2)
    background = ax.get_facecolor()
    lighter = _shares(timeline, group.passes) * (group.label in PASS_NAMES.values())
    shades = [mixed(group.colour, background, share) for share in lighter.tolist()]
    boxes = PolyCollection(
        list(corners),
        facecolors=shades,
        edgecolors=[background],
        linewidths=_outline(ax, group.extent),
        hatch=group.hatch,
        label=group.label,
    )
    ax.add_collection(boxes, autolim=False)


def _write(ax: Axes, timeline: Timeline, groups: Sequence[Group]) -> None:
    """Write the numbers of microbatches into the boxes of passes."""
    if not groups:
        return
    from matplotlib.colors import to_rgb

    from partitioner.analysis.plots.numerals import Numerals

    numbers = timeline.table.microbatch[np.concatenate([group.passes for group in groups])]
    colors = [np.tile(to_rgb(on_top(group.colour)), (len(group.passes), 1)) for group in groups]
    numerals = Numerals(numbers, np.concatenate([group.extent for group in groups]), np.concatenate(colors))
    numerals.set_offset_transform(ax.transData)
    ax.add_collection(numerals, autolim=False)


def _legend_entry(ax: Axes, group: Group) -> Patch:
    """Return the entry of a group in the legend."""
    from matplotlib.patches import Patch

    edge = ax.get_facecolor()
    return Patch(facecolor=group.colour, edgecolor=edge, hatch=group.hatch, linewidth=0, label=group.label)


def _outline(ax: Axes, extent: Floats) -> float:
    """Return the width in points of the lines between boxes, which are thinner if boxes are narrow."""
    left, right = ax.get_xlim()
    width = ax.get_window_extent().width / ax.figure.dpi * 72
    return min(0.8, 0.1 * width * float(np.median(extent[:, 1] - extent[:, 0])) / (right - left))


def _shares(timeline: Timeline, passes: Ints) -> Floats:
    """Return how much lighter each pass is drawn, shape (n,): 0 for the first stage of a device."""
    table = timeline.table
    stages = int(table.stage.max(initial=0)) + 1
    keys, chunk = np.unique(table.row * stages + table.stage, return_inverse=True)
    first = np.searchsorted(keys, table.row * stages)
    count = np.searchsorted(keys, (table.row + 1) * stages) - first
    share = (chunk - first) / np.maximum(1, count - 1) * LIGHTER
    return np.asarray(share[passes])
