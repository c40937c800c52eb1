"""Through the front door: the evaluator agrees, the optimum is met on small graphs and never undercut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Plan,
    WorkloadError,
    solve,
)
from partitioner.methods.local_search import search
from partitioner.methods.local_search.rounds import EFFORT
from tests.oracle import best_values
from tests.random_workloads import uneven_workload

SHAPES = [(objective, split) for objective in ("throughput", "gpipe") for split in ("free", "convex")]


def compared(seed: int, name: str, objective: str, split: str) -> tuple[Plan | None, float | None]:
    """The method's plan for a random workload, and the oracle's value."""
    graph, devices = uneven_workload(np.random.default_rng(seed), 7, 3)
    best = best_values(graph, devices, objective)[split]
    try:
        plan = solve(graph, devices, objective, method=name, split=split, seed=seed)
    except NoPlanFound:
        return None, best
    except (WorkloadError, InfeasibleError):
        assert best is None, seed
        return None, None
    assert best is not None, seed
    assert plan.bound <= best * (1 + 1e-9) + 1e-12, seed
    assert best <= plan.value * (1 + 1e-9) + 1e-12, seed
    return plan, best


@pytest.mark.parametrize(("first", "count"), [(60_000, 8), pytest.param(60_008, 17, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("objective", "split"), SHAPES)
def test_meets_the_optimum_of_small_graphs(
    monkeypatch: pytest.MonkeyPatch, objective: str, split: str, first: int, count: int
) -> None:
    """Nearly always within two short rounds; whatever is feasible is found."""
    monkeypatch.setattr(search, "EFFORT", replace(EFFORT, rounds=2))
    feasible = optimal = 0
    for seed in range(first, first + count):
        plan, best = compared(seed, "local_search", objective, split)
        feasible += best is not None
        optimal += plan is not None and best is not None and plan.value <= best * (1 + 1e-9) + 1e-12
    assert feasible > count * 4 / 5
    assert optimal >= feasible - 1


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
def test_the_baseline_is_never_below_the_optimum(objective: str) -> None:
    """Ten descents reach it on most small graphs."""
    found = optimal = 0
    for seed in range(61_000, 61_030):
        plan, best = compared(seed, "local_search_baseline", objective, "free")
        if plan is not None and best is not None:
            found += 1
            optimal += plan.value <= best * (1 + 1e-9) + 1e-12
    assert optimal > found - 3 > 15


def test_clusters_beat_single_moves() -> None:
    """Four chains whose inner edges are dear: single moves get stuck, annealing finds the four parts."""
    edges = [(i, i + 1) for i in range(39) if i % 10 != 9]
    graph = Graph.from_arrays({"accelerator": np.ones(40)}, edges, cost=30.0)
    values = [
        solve(graph, Devices.accelerated(4), method=name, split="free", gap=0.01).value
        for name in ("local_search", "local_search_baseline")
    ]
    assert values[0] == 10.0
    assert values[1] > 15.0


def test_tight_memory_is_repaired() -> None:
    """Sizes that fill every device to the last unit: the one way to pack them is found."""
    size = np.array([5.0, 4.0, 3.0, 3.0, 3.0, 6.0, 1.0, 5.0])
    edges = [(i, i + 1) for i in range(7)]
    graph = Graph.from_arrays({"gpu": np.ones(8)}, edges, 0.1, size=size)
    devices = Devices((DeviceKind("gpu", 3, memory=10.0),))
    plan = solve(graph, devices, method="local_search", split="free", gap=0.3)
    assert max(load.memory for load in plan.devices) == 10.0


def test_a_bound_that_is_met_ends_the_search() -> None:
    """A plan as good as the bound is optimal, with or without a limit on time."""
    graph = Graph.from_arrays({"accelerator": np.ones(6)}, [(0, 1), (2, 3), (4, 5)], cost=1.0)
    plan = solve(graph, Devices.accelerated(3), method="local_search", split="free", time_limit=60)
    assert (plan.value, plan.bound, plan.status) == (2.0, 2.0, "optimal")
    assert plan.runtime_seconds < 30


def test_a_time_limit_is_kept() -> None:
    """Where the bound cannot be met, the search goes on until its time is up, and says so."""
    graph = Graph.from_arrays({"accelerator": np.ones(5)}, [(0, 1), (1, 2), (2, 3), (3, 4)], cost=1.0)
    plan = solve(graph, Devices.accelerated(2), method="local_search", split="convex", time_limit=0.5)
    assert (plan.value, plan.stop_reason) == (4.0, "time_limit")
    assert plan.runtime_seconds < 5


def test_it_starts_from_the_plan_given() -> None:
    """With a plan to start from, the value is no worse even if no move is made."""
    graph, devices = uneven_workload(np.random.default_rng(62_009), 10, 3)
    first = solve(graph, devices, method="local_search", split="free")
    again = solve(graph, devices, method="local_search", split="free", warm_start=first, time_limit=1e-9)
    assert again.value <= first.value
