"""Areas are the memory over time, to one scale; limits are lines, or words where they are far away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from partitioner.analysis.plots import plot_memory
from tests.analysis.plots.reading import assert_readable, texts
from tests.analysis.plots.timelines import gpipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LIMITS = (7e3, 500.0, 1e9, np.inf)


def labels(ax: Axes) -> list[str]:
    return [str(found.get_label()) for found in ax.collections if not str(found.get_label()).startswith("_")]


@pytest.mark.parametrize(("devices", "microbatches"), [(1, 4), (3, 4), (16, 32)])
def test_areas_are_the_memory(devices: int, microbatches: int) -> None:
    """The area of each lane, in the lane's scale, is the integral of the device's memory."""
    from matplotlib.collections import PolyCollection

    timeline = gpipe(devices, microbatches)
    lanes = [found for found in plot_memory(timeline).collections if isinstance(found, PolyCollection)]
    assert len(lanes) == devices
    for row, lane in enumerate(lanes):
        x, y = np.asarray(lane.get_paths()[0].vertices).T
        area = abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2
        time = np.append(timeline.memory[row].time, timeline.makespan)
        used = np.sum(np.diff(time) * timeline.memory[row].used)
        assert area * timeline.peak_memory.max() / 0.82 == pytest.approx(used)
        assert y.max() == pytest.approx(row + 0.42)
        assert y.min() == pytest.approx(row + 0.42 - 0.82)


@pytest.mark.parametrize(
    ("devices", "microbatches", "limit"),
    [
        *((1, 4, limit) for limit in LIMITS),
        *(pytest.param(16, 32, limit, marks=pytest.mark.slow) for limit in LIMITS),
    ],
)
def test_texts_can_be_read(devices: int, microbatches: int, limit: float) -> None:
    assert_readable(plot_memory(gpipe(devices, microbatches, limit=limit)))


def test_limits_are_lines() -> None:
    """The peak is 450 and the limit 900: the line is at the top of each lane, the area at half its height."""
    from matplotlib.collections import LineCollection

    ax = plot_memory(gpipe(2, 4, limit=900.0))
    (limit,) = (found for found in ax.collections if isinstance(found, LineCollection))
    assert [segment[0][1] for segment in limit.get_segments()] == pytest.approx([-0.4, 0.6])
    assert labels(ax) == ["memory", "limit"]
    assert ax.collections[0].get_paths()[0].get_extents().y0 == pytest.approx(0.42 - 0.41)


def test_a_far_limit_is_only_written() -> None:
    ax = plot_memory(gpipe(2, 4, limit=16e9))
    assert labels(ax) == ["memory"]
    assert [text.get_text() for text in texts(ax)].count("450 of 16G") == 2


def test_no_limit_is_not_written() -> None:
    ax = plot_memory(gpipe(1, 4))
    assert labels(ax) == ["memory"] and "450" in [text.get_text() for text in texts(ax)]


def test_too_much_is_seen() -> None:
    """Below the peak the area has another colour, and the legend says why."""
    over, within = plot_memory(gpipe(1, 4, limit=449.0)), plot_memory(gpipe(1, 4, limit=450.0))
    assert labels(over) == ["memory, more than the device has", "limit"]
    colours = [ax.collections[0].get_facecolor() for ax in (over, within)]
    assert np.abs(np.asarray(colours[0]) - np.asarray(colours[1])).max() > 0.3
