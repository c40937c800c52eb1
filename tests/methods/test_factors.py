"""Factors of a kind are what multiplying times and costs by hand gives, where there is one kind only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, solve
from tests.random_workloads import random_workload


@pytest.mark.parametrize(("first", "count"), [(0, 3), pytest.param(3, 17, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("method", "split"), [("dp", "chain"), ("local_search", "free")])
def test_factors_are_multiplied_times_and_costs(method: str, split: str, first: int, count: int) -> None:
    """The same value for the same search."""
    kind, values = DeviceKind("gpu", 3), set()
    for seed in range(first, first + count):
        graph, _ = random_workload(np.random.default_rng(seed), 7)
        graph = replace(graph, allowed=np.ones_like(graph.allowed))
        uneven = replace(kind, name="new", times="gpu", time_factor=0.5, transfer_factor=4.0)
        by_factor = solve(graph, Devices((uneven,)), method=method, split=split)
        by_hand = replace(graph, time=graph.time * 0.5, cost=graph.cost * 4.0)
        expected = solve(by_hand, Devices((kind,)), method=method, split=split).value
        assert by_factor.value == pytest.approx(expected, rel=1e-12), seed
        values.add(expected)
    assert len(values) > count / 2
