"""Every node is drawn once in its device's colour and its pass's shape, every edge once."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from partitioner import Devices, Graph, OptionError, WorkloadError, evaluate
from partitioner.analysis.plots import plot_graph
from partitioner.analysis.plots.colours import device_look
from partitioner.analysis.plots.graph import folded
from tests.analysis.plots.graphs import random_split
from tests.analysis.plots.reading import assert_readable, laid_out, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

SIZES = [(30, 1), (600, 4), pytest.param(2000, 20, marks=pytest.mark.slow)]


def scatters(ax: Axes) -> list[PathCollection]:
    from matplotlib.collections import PathCollection

    return [found for found in ax.collections if isinstance(found, PathCollection)]


def places(ax: Axes) -> np.ndarray:
    return np.concatenate([np.asarray(found.get_offsets()) for found in scatters(ax)])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("nodes", "devices"), SIZES)
def test_nodes_and_edges_are_all_there(nodes: int, devices: int, training: bool) -> None:
    from matplotlib.collections import LineCollection

    graph, placement = random_split(nodes, devices, training)
    ax = plot_graph(graph, placement, layout="layered")
    assert len(scatters(ax)) == devices * (1 + training)
    assert len(places(ax)) == nodes
    lines = [found for found in ax.collections if isinstance(found, LineCollection)]
    assert sum(len(found.get_segments()) for found in lines) == len(graph.edges)
    cut = sum(placement[a] != placement[b] for a, b in graph.edges.tolist())
    assert len(lines[1].get_segments()) == cut


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("nodes", "devices"), SIZES)
def test_nodes_do_not_touch(nodes: int, devices: int, training: bool) -> None:
    """On the screen the closest two are at least as far apart as nodes are wide."""
    graph, placement = random_split(nodes, devices, training)
    ax = plot_graph(graph, placement, layout="layered")
    laid_out(ax)
    place = ax.transData.transform(places(ax))
    distance = np.abs(place[:, None] - place[None]).max(axis=2)
    np.fill_diagonal(distance, np.inf)
    width = scatters(ax)[0].get_sizes()[0] ** 0.5 * ax.figure.dpi / 72
    assert distance.min() >= width


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    ("nodes", "devices"),
    [
        (30, 1),
        (100, 8),
        pytest.param(600, 16, marks=pytest.mark.slow),
        pytest.param(800, 80, marks=pytest.mark.slow),
    ],
)
def test_texts_can_be_read(nodes: int, devices: int, training: bool) -> None:
    graph, placement = random_split(nodes, devices, training)
    assert_readable_graph(plot_graph(graph, placement, layout="layered"), devices + 2 * training)


def assert_readable_graph(ax: Axes, entries: int) -> None:
    """As `assert_readable`, with so many entries in the legend (72 devices are named, the others counted)."""
    assert len(texts(ax)) == (entries if entries < 72 else entries - 8 + 1)
    if entries > 2:
        assert_readable(ax)


def test_colours_follow_the_pipeline() -> None:
    """The first device in the graph has the first colour, whatever its name; passes differ in shape."""
    from matplotlib.colors import to_hex

    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], 0.5, backward=[0, 0, 1, 1])
    ax = plot_graph(graph, {0: "gpu7", 1: "gpu2", 2: "gpu2", 3: "gpu7"}, layout="layered")
    colours = [to_hex(np.asarray(found.get_facecolor())[0]) for found in scatters(ax)]
    assert colours == [device_look(i)[0] for i in (0, 0, 1, 1)]
    shapes = [len(np.asarray(found.get_paths()[0].vertices)) for found in scatters(ax)]
    assert shapes[0] == shapes[2] != shapes[1] == shapes[3]


def test_the_legend_names_loads() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], 0.5)
    placement = {0: "accelerator0", 1: "accelerator1"}
    found = evaluate(graph, Devices.accelerated(2), placement)
    named = [text.get_text() for text in texts(plot_graph(graph, placement, loads=found.loads))]
    assert named == ["accelerator0: load 1.5", "accelerator1: load 2.5"]


def test_a_node_without_a_place_is_named() -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, [("a", "b")], ids=["a", "b"])
    with pytest.raises(WorkloadError, match=r"node 'b': is not placed on any device"):
        plot_graph(graph, {"a": "gpu0"})


def test_unknown_layouts_are_refused() -> None:
    graph, placement = random_split(5, 1)
    with pytest.raises(OptionError, match=r"layout = 'round': must be one of auto, dot, layered"):
        plot_graph(graph, placement, layout="round")


def test_folded_strips_keep_neighbours_together() -> None:
    """On a path of 500 nodes the next node is one step on, or straight below at the end of a line."""
    place = folded(np.stack((np.arange(500.0), np.zeros(500)), axis=1))
    steps = np.array([np.abs(b - a) for a, b in pairwise(place)])
    turns = steps[:, 1] > 0
    assert 3 <= turns.sum() <= 20
    assert steps[~turns, 0] == pytest.approx(1.0)
    assert (steps[turns, 0] <= 1).all() and np.ptp(place[:, 0]) < 120


def fake_dot(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program of that name, alone on the path."""
    program = folder / "dot"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.skipif(os.name == "nt", reason="the program that stands in for dot is a shell script")
def test_graphviz_decides_where_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "\n".join(
        ["graph 1 2 2", "node 1 3 0.5 0 0 1 solid point b b", "node 0 1 2 0 0", "edge 0 1", "stop"]
    )
    fake_dot(tmp_path, monkeypatch, f"read line; echo '{answer}'")
    graph, placement = random_split(2, 1)
    assert sorted(places(plot_graph(graph, placement)).tolist()) == [[0, 2], [2, 0.5]]
    graph, placement = random_split(2, 1, training=True)  # has a backward pass, to be drawn below
    assert np.ptp(places(plot_graph(graph, placement)), axis=0).tolist() == [0, 2]
    assert np.ptp(places(plot_graph(graph, placement, layout="dot")), axis=0).tolist() == [2, 1.5]


@pytest.mark.skipif(os.name == "nt", reason="the program that stands in for dot is a shell script")
@pytest.mark.parametrize("script", ["exit 1", "echo node 0 x 1", "echo graph", "while :; do :; done"])
def test_else_layers_do(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that fails, answers nonsense or takes too long is as good as none."""
    monkeypatch.setattr("partitioner.analysis.plots.graph.SECONDS", 0.2)
    fake_dot(tmp_path, monkeypatch, script)
    graph, placement = random_split(2, 1)
    assert len(places(plot_graph(graph, placement))) == 2
    with pytest.raises(OptionError, match="layout = 'dot': Graphviz's program dot is not installed"):
        plot_graph(graph, placement, layout="dot")
