"""Bars are the parts of the loads in the order of the pipeline, the line is the bound."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Evaluation, Graph, evaluate, solve
from partitioner.analysis.plots import plot_loads
from tests.analysis.plots.reading import assert_readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def line(stages: int, communication: str = "sequential") -> Evaluation:
    """Stages of time 4, transfers of 0.5, on devices in reverse order; one device more is idle."""
    graph = Graph.from_arrays(
        {"accelerator": np.full(stages, 4.0)}, [(i, i + 1) for i in range(stages - 1)], 0.5
    )
    devices = Devices.accelerated(stages + 1, communication=communication)
    return evaluate(graph, devices, {i: f"accelerator{stages - 1 - i}" for i in range(stages)})


def bars(ax: Axes) -> dict[str, list[tuple[float, float]]]:
    """Left and right ends of the bars of each part, row by row."""
    from matplotlib.container import BarContainer

    return {
        str(found.get_label()): [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in found.patches]
        for found in ax.containers
        if isinstance(found, BarContainer)
    }


def names(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def lines(ax: Axes) -> list[float]:
    return [float(np.asarray(found.get_xdata())[0]) for found in ax.lines]


def test_bars_are_the_parts() -> None:
    """Three stages: the middle one fetches and sends; the first stands above, the idle device is left out."""
    ax = plot_loads(line(3))
    assert names(ax) == ["accelerator2", "accelerator1", "accelerator0"]
    assert bars(ax) == {
        "in": [(0, 0), (0, 0.5), (0, 0.5)],
        "compute": [(0, 4), (0.5, 4.5), (0.5, 4.5)],
        "out": [(4, 4.5), (4.5, 5), (4.5, 4.5)],
    }
    assert lines(ax) == []


@pytest.mark.parametrize("stages", [1, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("communication", ["sequential", "overlapped"])
def test_texts_can_be_read(stages: int, communication: str) -> None:
    assert_readable(plot_loads(line(stages, communication), bound=4.0))


def test_stages_of_a_plan_name_their_layers() -> None:
    layers = ["embed", "layers.0", "layers.1", "layers.2", "head"]
    edges = [(i, i + 1) for i in range(4)]
    graph = Graph.from_arrays({"accelerator": [2.0] * 5}, edges, 0.0, layer=layers)
    ax = plot_loads(solve(graph, Devices.accelerated(2)))
    assert names(ax) == ["accelerator0: embed, layers.0-1", "accelerator1: layers.2, head"]
    assert_readable(ax)


def test_the_bound_is_a_line() -> None:
    """By default that of a plan whose value is its largest load; none for another value; or as given."""
    graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], 0.5)
    plan = solve(graph, Devices.accelerated(2))
    assert lines(plot_loads(plan)) == [plan.bound] == [3.5]
    assert lines(plot_loads(replace(plan, objective="batch", value=2 * plan.value))) == []
    assert lines(plot_loads(line(2), bound=1.5)) == [1.5]


def test_where_parts_overlap_the_load_is_a_mark() -> None:
    """The middle stage is busy for 4, although its parts add up to 5."""
    from matplotlib.collections import LineCollection

    marks = list(plot_loads(line(3, "overlapped")).collections)
    assert isinstance(marks[0], LineCollection) and len(marks) == 1
    assert [segment[0][0] for segment in marks[0].get_segments()] == [4.0, 4.0, 4.0]
    assert not plot_loads(line(3)).collections


def test_replicas_are_one_bar() -> None:
    """Two gpus share a stage of time 8 and exchange weights of 6 over a link of 3: 4 and 1 each."""
    graph = Graph.from_arrays({"gpu": [8.0, 2.0]}, [(0, 1)], 0.0, size=[6.0, 1.0])
    devices = Devices((DeviceKind("gpu", 3, bandwidth=3.0),))
    found = evaluate(graph, devices, {0: "gpu0", 1: "gpu2"}, replicas={"gpu0": ["gpu1"]})
    ax = plot_loads(found)
    assert names(ax) == ["gpu0 x2", "gpu2"]
    assert bars(ax)["compute"] == [(0, 4), (0, 2)]
    assert bars(ax)["exchange of weights"] == [(4, 5), (2, 2)]
    assert found.loads[0].load == 5
