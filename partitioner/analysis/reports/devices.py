"""The pictures of the loads of devices against the bound, and of their memory over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.analysis.plots.colours import COMPUTE, OVER, PARTS
from partitioner.analysis.plots.loads import TOLERANCE, bounds_loads, in_order, load_parts, stage_title
from partitioner.analysis.plots.memory import FLOOR, lanes, peak_words
from partitioner.analysis.plots.order import pipeline_order
from partitioner.analysis.reports.canvas import (
    NEUTRAL,
    THICK,
    add_hover,
    draw_span,
    legend_above,
    row_figure,
    stacked_bars,
    with_unit,
)
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.text.figures import amount, figure
from partitioner.results.plan import Plan
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Floats

if TYPE_CHECKING:
    from bokeh.models import Range1d
    from bokeh.plotting import figure as Figure  # noqa: N812

TITLE = "memory of the first device of each part, with dashed lines at the limits"
SHOWN = ("device", "memory", "peak", "from", "to")
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


def memory_figure(timeline: Timeline, devices: Collection[str], x_range: Range1d, unit: str) -> Figure:
    """Return the picture of the memory over time: a row for each of the devices, all with the same scale.

    A dashed line is the limit of a device, see :func:`partitioner.analysis.plots.memory.lanes`. The memory
    of a device that exceeds its limit has another colour.
    """
    from bokeh.models import Title

    order = np.array([i for i in pipeline_order(timeline).tolist() if timeline.devices[i] in devices])
    limit, peak = timeline.memory_limit[order], timeline.peak_memory[order]
    drawn, scale = lanes(peak, limit)
    plot = row_figure("memory", [timeline.devices[i] for i in order.tolist()], x_range=x_range)
    plot.title = Title(text=TITLE, text_font_style="normal")
    plot.xaxis.axis_label = with_unit("time", unit)
    steps = [_steps(timeline, device, row, scale) for row, device in enumerate(order.tolist())]
    source = {name: np.concatenate([one[name] for one in steps]) for name in steps[0]}
    look = {"color": "colour", "line_width": 0, "source": source}
    area = plot.quad("left", "right", "top", "bottom", **look)
    rows = np.flatnonzero(drawn)
    height = rows + FLOOR - scale * limit[rows]
    plot.segment(0, height, timeline.makespan, height, color=NEUTRAL, line_width=1.5, line_dash="dashed")
    add_hover(plot, [area], SHOWN)
    return plot


def _steps(timeline: Timeline, device: int, row: int, scale: float) -> dict[str, Any]:
    """Return a box for each time in which the memory of a device does not change."""
    time, used = timeline.memory[device]
    last = np.append(time[1:] > time[:-1], timeline.makespan > time[-1])  # of changes at the same time
    time, used = time[last], used[last]
    first = np.append(True, used[1:] != used[:-1])
    time, used = time[first], used[first]
    end = np.append(time[1:], timeline.makespan)
    peak = peak_words(float(timeline.peak_memory[device]), float(timeline.memory_limit[device]))
    texts = {
        "device": [timeline.devices[device]] * len(time),
        "memory": [amount(value) for value in used.tolist()],
        "peak": [peak] * len(time),
        "from": [figure(value) for value in time.tolist()],
        "to": [figure(value) for value in end.tolist()],
        "colour": [COMPUTE if timeline.fits[device] else OVER] * len(time),
    }
    shape = {"left": time, "right": end, "bottom": np.full(len(time), row + FLOOR)}
    reals = shape | {"top": row + FLOOR - scale * used}
    return {name: values.astype(np.float32) for name, values in reals.items()} | {
        name: np.array(values, dtype=object) for name, values in texts.items()
    }
