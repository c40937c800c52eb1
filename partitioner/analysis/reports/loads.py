"""The picture of the loads of devices against the bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from partitioner.analysis.plots.colours import COMPUTE, PARTS
from partitioner.analysis.plots.loads import TOLERANCE, bounds_loads, in_order, load_parts, stage_title
from partitioner.analysis.reports.canvas import (
    THICK,
    add_hover,
    draw_span,
    legend_above,
    row_figure,
    stacked_bars,
    with_unit,
)
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.text.figures import figure
from partitioner.results.plan import Plan
from partitioner.workload.graph import Floats

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure  # noqa: N812

MARK = "#e0409a"  # stands out from the parts and from both backgrounds
NAMES = {"compute": "processing", "in": "transfers in", "out": "transfers out", "sync": "exchange of weights"}


def loads_figure(plan: Plan, loads: Sequence[DeviceLoad]) -> Figure:
    """Return the picture of the parts of every load, with the bound if it is one of the largest load.

    Devices are in the order of the pipeline; the replicas of a stage share a bar. If parts overlap in time,
    the load is less than their sum, and is drawn as a mark on the bar.
    """
    used = in_order(loads, plan.stages)
    copies = Counter(load.replica_of for load in loads)
    load, parts = np.array([one.load for one in used]), load_parts(used)
    right = np.cumsum(list(parts.values()), axis=0)
    bound = plan.bound if bounds_loads(plan) else None
    end = 1.03 * max(float(right.max()), bound or 0.0)
    plot = row_figure("loads", [stage_title(one.name, 1 + copies[one.name], "") for one in used], end)
    plot.xaxis.axis_label = with_unit("time per sample", plan.time_unit)
    shown = {"device": [one.name for one in used], "load": _figures(load)}
    shown |= {NAMES[name]: _figures(length) for name, length in parts.items()}
    named = {NAMES[name]: length for name, length in parts.items()}
    bars = stacked_bars(plot, named, {NAMES[name]: PARTS.get(name, COMPUTE) for name in parts}, shown)
    if (right[-1] > load * (1 + TOLERANCE)).any():
        _mark(plot, load)
    if bound is not None:
        draw_span(plot, bound)
    add_hover(plot, bars, tuple(shown))
    legend_above(plot)
    return plot


def _mark(plot: Figure, load: Floats) -> None:
    rows = np.arange(len(load))
    look = {"color": MARK, "line_width": 3, "legend_label": "load (parts overlap)"}
    plot.segment(load, rows - THICK / 2, load, rows + THICK / 2, **look)


def _figures(values: Floats) -> list[str]:
    return [figure(value) for value in values.tolist()]
