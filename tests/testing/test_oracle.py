"""The exhaustive search of partitioner.testing agrees with the independent oracles of these tests."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph
from partitioner.planning.objectives import OBJECTIVES
from partitioner.testing.checks import small_workload
from partitioner.testing.oracle import least_value, orders_of, placements_of
from tests.oracle import best_values
from tests.random_workloads import random_workload


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
def test_it_finds_what_another_oracle_finds(objective: str) -> None:
    for seed in range(60_000, 60_020):
        graph, devices = random_workload(np.random.default_rng(seed), 5, 3)
        other = best_values(graph, devices, objective)
        for split in OBJECTIVES[objective].splits:
            found = least_value(graph, devices, OBJECTIVES[objective], split, {})
            known = other[split]
            assert found == (known if known is None else pytest.approx(known, rel=1e-12)), (seed, split)


def test_equal_devices_are_tried_once() -> None:
    """Four nodes fall into 14 sets of at most three parts; a device of another kind is not equal."""
    graph = Graph.from_arrays({"gpu": [1.0] * 4, "cpu": [1.0] * 4})
    assert len(list(placements_of(graph, Devices((DeviceKind("gpu", 3),))))) == 14
    two = Devices((DeviceKind("gpu", 1), DeviceKind("cpu", 1)))
    assert len(list(placements_of(graph, two))) == 2**4


def test_every_order_is_tried() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [("a", "b")], ids="abcd")
    orders = list(orders_of(graph))
    assert len(orders) == len(set(orders)) == factorial(4) // 2
    assert all(order.index("a") < order.index("b") for order in orders)


def test_small_workloads_have_all_that_turns_up() -> None:
    """Both passes, limits of memory that rule all plans out, nodes of one kind only, every communication."""
    found = [small_workload(seed) for seed in range(200)]
    assert all(len(graph) <= 6 for graph, _ in found)
    assert 50 < sum(bool(graph.backward.any()) for graph, _ in found) < 150
    assert {devices.communication for _, devices in found} == {"sequential", "overlapped", "duplex"}
    throughput = OBJECTIVES["throughput"]
    least = [least_value(*workload, throughput, "chain", {}) for workload in found[:100]]
    assert 10 < sum(value is None for value in least) < 60
