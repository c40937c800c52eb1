"""The split for the largest throughput is feasible for latency, and its value is its own."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.max_load import solve_max_load
from partitioner.methods.method import Settings
from partitioner.methods.places import places_of
from tests.methods.latency.workloads import judged, random_problems
from tests.methods.slow_parameters import slow


@pytest.mark.parametrize(("first", "count"), [(7000, 24), slow(7024, 96)])
def test_max_load_splits_are_feasible(first: int, count: int) -> None:
    found = 0
    for seed, graph, devices, problem in random_problems(first, count):
        outcome = solve_max_load(problem, Settings())
        if outcome.parts is None:
            assert np.isinf(outcome.value), seed
            continue
        assert outcome.subgraph is not None
        layout = SubgraphLayout(places_of(problem, outcome.parts), outcome.subgraph)
        verdict = judged(graph, devices, problem, layout)
        assert verdict.feasible, (seed, verdict.violations)
        assert outcome.value == pytest.approx(verdict.value, rel=1e-9, abs=1e-9), seed
        found += 1
    assert found > count // 2, found
