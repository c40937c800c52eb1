"""Every operation that takes time is one box, where and when it ran; numbers stand only where they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.analysis.plots import plot_timeline
from partitioner.schedule.simulation import simulate
from partitioner.schedule.timeline import Timeline
from tests.analysis.plots.reading import assert_readable, laid_out
from tests.analysis.plots.timelines import gpipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = [(1, 4), (3, 5), *(pytest.param(16, count, marks=pytest.mark.slow) for count in (16, 64))]


def boxes(ax: Axes) -> list[tuple[str, float, float, int]]:
    """Label, left and right end and row of every box that is drawn."""
    from matplotlib.collections import PolyCollection

    found = []
    for collection in ax.collections:
        if isinstance(collection, PolyCollection):
            for path in collection.get_paths():
                (left, low), (right, high) = path.get_extents().get_points().tolist()
                found.append((str(collection.get_label()), left, right, round((low + high) / 2)))
    return found


def numerals(ax: Axes) -> Any:
    from partitioner.analysis.plots.numerals import Numerals

    return next(found for found in ax.collections if isinstance(found, Numerals))


def operations(timeline: Timeline) -> list[tuple[str, float, float, int]]:
    """What must be drawn, by the timeline's own list."""
    names = {"F": "forward", "B": "backward", "in": "transfer in", "out": "transfer out"}
    names |= {"sync": "exchange of weights", "I": "backward, of inputs", "W": "backward, of weights"}
    return [
        (
            names[done.direction if done.part == "compute" else done.part],
            done.start,
            done.end,
            timeline.devices.index(done.device),
        )
        for done in timeline.operations()
        if done.end > done.start
    ]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("devices", "microbatches"), SIZES)
def test_boxes_are_the_operations(devices: int, microbatches: int, at_once: bool) -> None:
    timeline = gpipe(devices, microbatches, at_once=at_once)
    drawn = boxes(plot_timeline(timeline))
    assert len(drawn) == devices * (6 * microbatches + 1)
    assert sorted(drawn) == sorted(operations(timeline))  # all times are multiples of 1/8


@pytest.mark.slow
def test_a_thousand_boxes_are_a_few_artists() -> None:
    ax = plot_timeline(gpipe(16, 64))
    assert len(boxes(ax)) > 6000 and len(ax.get_children()) < 30


@pytest.mark.parametrize(("devices", "microbatches"), SIZES)
def test_texts_can_be_read(devices: int, microbatches: int) -> None:
    assert_readable(plot_timeline(gpipe(devices, microbatches)))


@pytest.mark.parametrize(("devices", "microbatches"), SIZES)
def test_numbers_stand_only_where_they_fit(devices: int, microbatches: int) -> None:
    """Each number's outline is inside its box; in wide boxes all are written, zooming in shows more."""
    from partitioner.analysis.plots.numerals import _extent

    timeline = gpipe(devices, microbatches)
    ax = plot_timeline(timeline)
    laid_out(ax)
    found = numerals(ax)
    size, fits = found.fitting(ax.figure.dpi / 72)
    scale = ax.get_window_extent().width / timeline.makespan / ax.figure.dpi * 72
    room = (found.boxes[fits, 1] - found.boxes[fits, 0]) * scale
    ink = [_extent(number, size)[0] for number in found.numbers[fits].tolist()]
    assert fits.any() and (np.array(ink) < room).all()
    assert fits.all() == (devices < 16)
    ax.set_xlim(0, 20)
    assert found.fitting(ax.figure.dpi / 72)[1].all()


def test_numbers_are_the_microbatches() -> None:
    ax = plot_timeline(gpipe(2, 3))
    laid_out(ax)
    found = numerals(ax)
    assert found.numbers.tolist() == [0, 1, 2] * 4
    assert found.boxes[0].tolist() == pytest.approx([0.125, 0.875, -0.4, 0.4])


def test_parts_at_once_lie_below_one_another() -> None:
    """Boxes of a device that overlap in time do not overlap in height."""
    ax = plot_timeline(gpipe(1, 4, at_once=True))
    band = {
        str(drawn.get_label()): drawn.get_paths()[0].get_extents()
        for drawn in ax.collections
        if drawn.get_paths()
    }
    assert band["forward"].y1 < band["transfer in"].y0
    assert band["transfer in"].y1 < band["transfer out"].y0


def test_rows_stand_in_the_order_of_the_pipeline() -> None:
    """The second device runs the first stage: it stands above; and it is drawn on the axes that are given."""
    from matplotlib import pyplot

    graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], 0.25)
    placement = {0: "accelerator1", 1: "accelerator0"}
    timeline = simulate(graph, Devices.accelerated(2), placement, "inference", 3)
    given = pyplot.subplots()[1]
    ax = plot_timeline(timeline, given)
    assert ax is given
    assert [label.get_text() for label in ax.get_yticklabels()] == ["accelerator1", "accelerator0"]
    first = [box for box in boxes(ax) if box[0] == "forward" and box[3] == 0]
    assert [right - left for _, left, right, _ in first] == pytest.approx([1.0] * 3)


def test_the_legend_names_what_is_there() -> None:
    ax = plot_timeline(gpipe(2, 2))
    legend = ax.get_legend()
    assert legend is not None
    named = [text.get_text() for text in legend.get_texts()]
    assert named == ["forward", "backward", "transfer in", "transfer out", "exchange of weights"]
