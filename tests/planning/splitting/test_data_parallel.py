"""Replicas share the batch, keep their parameters, and meet where gradients are aggregated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import Graph, OptionError, data_parallel
from tests.random_workloads import random_workload


def training() -> Graph:
    """F -> g -> g' -> f'; f and f' share their parameters of 10."""
    return Graph.from_arrays(
        {"gpu": [2.0, 4.0, 8.0, 4.0]},
        [("f", "g"), ("g", "g'"), ("g'", "f'")],
        [2.0, 4.0, 6.0],
        ids=["f", "g", "g'", "f'"],
        backward=[False, False, True, True],
        color=["weights", None, None, "weights"],
        parameters=[10.0, 0.0, 0.0, 0.0],
        activations=[0.0, 6.0, 0.0, 0.0],
    )


def test_times_costs_and_activations_are_shared() -> None:
    graph = data_parallel(training(), 2, gradient_cost=0.5)
    assert len(graph) == 9
    assert graph.time[0].tolist() == [1.0, 2.0, 4.0, 2.0] * 2 + [0.0]
    assert graph.parts[0].tolist() == [10.0, 0.0, 0.0, 0.0] * 2 + [0.0]
    assert graph.parts[3].tolist() == [0.0, 3.0, 0.0, 0.0] * 2 + [0.0]
    assert graph.cost.tolist() == [1.0, 2.0, 3.0] * 2 + [5.0, 5.0]


def test_gradients_come_from_the_backward_node_of_the_class() -> None:
    """Both replicas of f' send 10 units at 0.5 each to one aggregation; classes stay apart."""
    graph = data_parallel(training(), 2, gradient_cost=0.5)
    assert graph.ids[-1] == "f'/aggregation"
    assert graph.edges[-2:].tolist() == [[3, 8], [7, 8]]
    assert graph.color.tolist() == [0, -1, -1, 0, 1, -1, -1, 1, -1]
    assert graph.color_labels == ("weights/replica0", "weights/replica1")


def test_one_aggregation_for_each_class_with_weights() -> None:
    """Work is conserved, and every replica sends once."""
    seen = 0
    for seed in range(100):
        graph, _ = random_workload(np.random.default_rng(seed))
        parallel = data_parallel(graph, 3, gradient_cost=0.1)
        owner = [c if c >= 0 else -i - 2 for i, c in enumerate(graph.color.tolist())]
        weighty = {o for o, w in zip(owner, graph.weights.tolist(), strict=True) if w > 0}
        assert len(parallel) == 3 * len(graph) + len(weighty)
        np.testing.assert_allclose(parallel.time.sum(axis=1), graph.time.sum(axis=1))
        assert len(parallel.edges) == 3 * (len(graph.edges) + len(weighty))
        seen += len(weighty)
    assert seen > 50


@pytest.mark.parametrize(("replicas", "cost"), [(0, 0.0), (True, 0.0), (2.0, 0.0), (2, -1.0), (2, "x")])
def test_wrong_numbers_are_refused(replicas: Any, cost: Any) -> None:
    with pytest.raises(OptionError, match="must be"):
        data_parallel(training(), replicas, gradient_cost=cost)
