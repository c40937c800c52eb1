"""Pictures of what runs when: the passes of a pipeline, or the subgraphs and operators of one sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.analysis.plots.colours import PASSES as PASS_COLOURS
from partitioner.analysis.plots.order import pipeline_order
from partitioner.analysis.plots.timeline import Group, boxes
from partitioner.analysis.reports.canvas import add_hover, legend_above, row_figure, with_unit
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.evaluation.text.figures import figure
from partitioner.evaluation.text.names import joined_within
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Graph

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure  # noqa: N812

THICK = 0.8
NAMED = 90  # characters of the names of nodes that the pointer shows
PALE = 0.5
SIDES = ((False, "forward", "F"), (True, "backward", "B"))
HATCHES = {"": None, "////": "right_diagonal_line"}


def timeline_figure(timeline: Timeline, unit: str) -> Figure:
    """Return the picture of a simulated schedule: a row for each device, a box for each pass and transfer."""
    order = pipeline_order(timeline)
    rows = [timeline.devices[i] for i in order.tolist()]
    plot = row_figure("timeline", rows, timeline.makespan)
    plot.xaxis.axis_label = with_unit("time", unit)
    row = np.argsort(order)[timeline.table.row]
    groups = [group for group in boxes(timeline, row) if len(group.passes)]
    drawn = [_draw(plot, timeline, group) for group in groups]
    add_hover(plot, drawn, ("device", "runs", "stage", "sample", "from", "to"))
    legend_above(plot)
    return plot


def _draw(plot: Figure, timeline: Timeline, group: Group) -> Any:
    table, (left, right, bottom, top) = timeline.table, group.extent.astype(np.float32).T
    names = np.array(timeline.devices, dtype=object)
    source = {
        **{"left": left, "right": right, "bottom": bottom, "top": top},
        "device": names[table.row[group.passes]],
        "runs": [group.label] * len(left),
        "stage": table.stage[group.passes].astype(np.int32) + 1,
        "sample": table.microbatch[group.passes].astype(np.int32) + 1,
        **_times(group.extent[:, 0].tolist(), group.extent[:, 1].tolist()),
    }
    look = {"fill_color": group.colour, "line_width": 0, "hatch_pattern": HATCHES[group.hatch]}
    return plot.quad("left", "right", "top", "bottom", source=source, legend_label=group.label, **look)


def runs_figure(schedule: Schedule, graph: Graph, devices: Sequence[str], unit: str) -> Figure:
    """Return the picture of the runs of one sample: a row for each device, a box for each run.

    Runs on the critical path have a stronger colour.
    """
    plot = row_figure("timeline", devices, max(run.finish for run in schedule.entries))
    plot.xaxis.axis_label = with_unit("time", unit)
    critical = set(schedule.critical_path)
    drawn = []
    for (backward, label, letter), on_path in product(SIDES, (False, True)):
        runs = [
            run
            for i, run in enumerate(schedule.entries)
            if run.backward is backward and (i in critical) is on_path
        ]
        if runs:
            name = f"{label}, on the critical path" if on_path else label
            look = {"alpha": 1.0 if on_path else PALE, "legend_label": name}
            source = _source(runs, graph, devices)
            look |= {"color": PASS_COLOURS[letter], "line_width": 0, "height": THICK, "source": source}
            drawn.append(plot.hbar("row", left="left", right="right", **look))
    add_hover(plot, drawn, ("device", "nodes", "from", "to", "processing", "transfers"))
    legend_above(plot)
    return plot


def _source(runs: Sequence[Run], graph: Graph, devices: Sequence[str]) -> dict[str, Any]:
    row = {name: number for number, name in enumerate(devices)}
    left, right = [run.start for run in runs], [run.finish for run in runs]
    return {
        **{"left": left, "right": right, "row": [row[run.device] for run in runs]},
        "device": [run.device for run in runs],
        "nodes": [_named(run, graph) for run in runs],
        **_times(left, right),
        "processing": [figure(run.compute) for run in runs],
        "transfers": [figure(run.transfer_in + run.transfer_out) for run in runs],
    }


def _named(run: Run, graph: Graph) -> str:
    names = [graph.names[graph.position[node]] for node in run.nodes]
    return f"{len(names)}: {joined_within(names, NAMED)}" if len(names) > 1 else names[0]


def _times(begin: Sequence[float], end: Sequence[float]) -> dict[str, list[str]]:
    return {"from": [figure(value) for value in begin], "to": [figure(value) for value in end]}
