"""The picture of the memory of every device over time."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.analysis.plots.colours import COMPUTE, OVER
from partitioner.analysis.plots.memory import FLOOR, lanes, peak_words
from partitioner.analysis.plots.order import pipeline_order
from partitioner.analysis.reports.canvas import NEUTRAL, add_hover, row_figure, with_unit
from partitioner.evaluation.text.figures import amount, figure
from partitioner.schedule.timeline import Timeline

if TYPE_CHECKING:
    from bokeh.models import Range1d
    from bokeh.plotting import figure as Figure  # noqa: N812

TITLE = "memory of the first device of each part, with dashed lines at the limits"
SHOWN = ("device", "memory", "peak", "from", "to")


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
