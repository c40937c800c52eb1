"""Kinds with factors are kinds with other times and costs, for every objective."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, evaluate
from tests.random_workloads import random_workload

OBJECTIVES = ("throughput", "gpipe", "latency", "batch")


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_factors_scale_times_and_costs(objective: str, count: int) -> None:
    """Times and costs of the graph times 3 and 5, for whoever pays: the same values."""
    rng = np.random.default_rng(5)
    batch: dict[str, Any] = {"microbatches": 3} if objective == "batch" else {}
    for _ in range(count):
        graph, devices = random_workload(rng)
        placement = {node: str(rng.choice(devices.names)) for node in graph.ids}
        scaled = replace(graph, time=graph.time * 3, cost=graph.cost * 5)
        kinds = tuple(replace(kind, time_factor=3.0, transfer_factor=5.0) for kind in devices.kinds)
        found = evaluate(graph, replace(devices, kinds=kinds), placement, objective, **batch)
        expected = evaluate(scaled, devices, placement, objective, **batch)
        assert found.value == pytest.approx(expected.value, rel=1e-12)
        assert found.violations == expected.violations


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_kind_takes_the_times_of_another(objective: str) -> None:
    """And what may run on that one may run on it."""
    graph = Graph.from_arrays({"gpu": [2.0, 4.0]}, [(0, 1)], 1.0, allowed={"gpu": [True, False]})
    kinds = (DeviceKind("gpu", 1), DeviceKind("old", 1, times="gpu", time_factor=2.0, transfer_factor=3.0))
    batch: dict[str, Any] = {"microbatches": 2} if objective == "batch" else {}
    found = evaluate(graph, Devices(kinds), {0: "old0", 1: "gpu0"}, objective, **batch)
    values = {"throughput": 7, "gpipe": 7, "latency": 4 + 3 + 1 + 4, "batch": 7 + 5 + 7}
    assert found.value == values[objective]
    assert found.violations == ("node 1 may not run on gpu0",)
    swapped = evaluate(graph, Devices(kinds), {0: "gpu0", 1: "old0"}, objective, **batch)
    assert swapped.violations == ("node 1 may not run on old0",)


@pytest.mark.parametrize("seed", range(5))
def test_a_plain_pipeline_is_the_plain_placement(seed: int) -> None:
    """One server for all, no copies, a batch of one: the loads and the rules are those of any placement."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        graph, devices = random_workload(rng)
        placement = {node: str(rng.choice(devices.names)) for node in graph.ids}
        plain = evaluate(graph, devices, placement)
        batch = evaluate(graph, devices, placement, "batch", microbatches=1)
        assert batch.loads == plain.loads and batch.shape == plain.shape
        assert batch.value == pytest.approx(sum(entry.load for entry in plain.loads))
        assert batch.violations[-len(plain.violations) :] == plain.violations or not plain.violations
        assert (len(batch.violations) - len(plain.violations)) == (plain.shape.name != "chain")
