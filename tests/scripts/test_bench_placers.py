"""Random operator graphs have the figures that they promise; the benchmark has two rows a method."""

from __future__ import annotations

import bench_placers
import numpy as np
import operator_graphs
import pytest

import partitioner as pt


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("nodes", [20, 57, 400, 3810])
def test_graphs_are_as_they_promise(nodes: int, training: bool) -> None:
    """Nodes, sources, CCR, memory, colours, passes; the same for a seed, another one for another."""
    graph = operator_graphs.operator_graph(nodes, 1, training, ccr=33.1)
    assert len(graph) == nodes
    sources = nodes - len(np.unique(graph.edges[:, 1]))
    assert sources == pytest.approx(nodes / 3, abs=2)
    assert graph.cost.sum() / graph.time.sum() == pytest.approx(33.1)
    assert graph.size.sum() == pytest.approx(2.5 * operator_graphs.MEMORY)
    assert graph.backward.any() == training
    pairs = np.bincount(graph.color[graph.color >= 0])
    assert len(pairs) == (nodes // 9 if training else 0) and (pairs == 2).all()
    again = operator_graphs.operator_graph(nodes, 1, training, ccr=33.1)
    assert again.digest == graph.digest
    assert operator_graphs.operator_graph(nodes, 2, training).digest != graph.digest


def test_most_operators_are_tiny() -> None:
    """A tenth of the nodes takes most of the time."""
    time = np.sort(operator_graphs.operator_graph(3810, 0).time[0])
    assert time[-381:].sum() > time.sum() / 2


def test_every_method_has_two_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_placers.main(["heft", "--nodes", "100", "400", "--repeat", "1"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["method", "of which", "100", "400", "slope"]
    assert [row[:2] for row in rows[2:]] == [["heft", "placer"], ["heft", "whole call"]]
    assert all(float(row[2]) >= 0 for row in rows[2:])


def test_a_method_without_a_plan_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Two devices lack the memory for any graph; whether nothing is found or there is nothing, it is said."""
    graph = operator_graphs.operator_graph(100, 0)
    assert graph.size.sum() > 2 * operator_graphs.MEMORY
    with pytest.raises(pt.InfeasibleError):
        pt.solve(graph, operator_graphs.devices(2), "makespan", method="heft")
    assert bench_placers.main(["heft", "--nodes", "100", "--devices", "2"]) == 0
    assert "no plan" in capsys.readouterr().out


def test_unknown_methods_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_placers.main(["dp"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("bench_placers: dp: choose from ")
    assert set(told.strip().partition("from ")[2].split(", ")) == set(bench_placers.placers())
    assert "heft" in told
