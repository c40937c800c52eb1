"""The pipeline method finds the optimum of every extension, and tells infeasible from feasible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trials.accepted import capacities, sizes, stages

from partitioner import (
    DeviceGroup,
    DeviceKind,
    Devices,
    Graph,
    GroupLink,
    Level,
    WorkloadError,
    conflicting_demands,
    evaluate,
    least_memory,
    solve,
)
from partitioner.methods.method import Outcome, Settings
from tests.methods.dp.pipeline_cases import best_value, solved
from tests.methods.slow_parameters import slow
from tests.random_pipelines import random_case

GPIPE: dict[str, Any] = {"schedule": "gpipe", "microbatches": 6, "replicas": 4}
SERVERS = (Level("server", {"gpu": 2}, 2.0),)
RACKS = (Level("server", {"gpu": 1}, 2.0), Level("rack", {"gpu": 2}, 2.0))


def scarce(levels: tuple[Level, ...], memory: float = 12.0) -> tuple[Graph, Devices]:
    """Two nodes, of which the second fits only if three devices share it."""
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cost=0.1, size=4.0, activations=[1.0, 3.0])
    return graph, Devices((DeviceKind("gpu", 4, memory=memory),), levels=levels)


@pytest.mark.parametrize("levels", [SERVERS, RACKS])
def test_a_stage_in_two_servers_fits_where_none_in_whole_servers_does(levels: tuple[Level, ...]) -> None:
    graph, devices = scarce(levels)
    plan = solve(graph, devices, **GPIPE)
    assert plan.value == pytest.approx(1.2)
    assert plan.bound <= 1.2
    again = evaluate(graph, devices, plan)
    assert again.feasible
    assert again.value == plan.value


@pytest.mark.parametrize("levels", [SERVERS, RACKS])
def test_the_least_memory_is_that_of_stages_on_any_devices(levels: tuple[Level, ...]) -> None:
    found = least_memory(*scarce(levels), **GPIPE)
    assert found.memory == 10.0
    assert found.proven


def test_demands_that_a_plan_obeys_are_in_no_conflict() -> None:
    assert not conflicting_demands(*scarce(SERVERS), **GPIPE).demands


@pytest.mark.parametrize("limits", [{}, {"max_time_per_sample": 5.0}])
def test_the_capacity_is_that_of_stages_on_any_devices(limits: dict[str, Any]) -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cost=0.1, size=4.0, cache=[1.0, 3.0])
    plan = solve(graph, scarce(RACKS)[1], "capacity", replicas=4, **limits)
    assert (plan.value, plan.status) == (6.0, "optimal")


def test_a_stage_in_two_explicit_groups_is_found() -> None:
    """Three devices share the second node: two of one group and one of the other."""
    graph, devices = scarce(())
    groups = DeviceGroup("a", {"gpu": 2}), DeviceGroup("b", {"gpu": 2})
    apart = Devices(devices.kinds, groups=groups, links=(GroupLink(2.0),))
    plan = solve(graph, apart, **GPIPE)
    assert plan.value == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("family", "count"),
    [(stages, 12), (capacities, 8), (sizes, 8), slow(stages, 30), slow(capacities, 12), slow(sizes, 12)],
)
def test_random_cases_against_every_accepted_plan(family: object, count: int) -> None:
    assert callable(family)
    for seed in range(count):
        row, outcome, wrong, again = family(np.random.default_rng([seed, 9]))
        assert not wrong, f"{row}, {outcome}: {wrong}\n{again}"


ALONE = ["", "kinds", "replicas", "memory", "constraints", "batch"]
TOGETHER = ["kinds replicas", "replicas memory", "replicas constraints", "replicas batch", "memory batch"]
ALL = "kinds replicas memory constraints"
LATE = ["replicas latency", f"{ALL} batch latency"]
COMBINATIONS = [*ALONE, *TOGETHER, ALL, f"{ALL} batch", *LATE]


def attempt(seed: int, features: str, settings: Settings) -> tuple[Outcome, float | None] | None:
    """What the method and the oracle find for a random case; None if it is no workload."""
    case = random_case(np.random.default_rng(seed), features.split(), 7, 4 + seed % 2)
    try:
        return solved(case, settings), best_value(case)
    except WorkloadError:
        return None


def agree(seeds: range, features: str) -> None:
    """Hold the method against the oracle; both answers must turn up."""
    feasible = shared = 0
    for seed in seeds:
        found = attempt(seed, features, Settings(orders=1 + seed % 3))
        if found is None:
            continue
        outcome, best = found
        assert (outcome.parts is None) == (best is None), seed
        if best is None:
            assert outcome.infeasible, seed
            continue
        feasible += 1
        assert outcome.parts is not None
        shared += any(part.replicas > 1 for part in outcome.parts)
        assert outcome.stop_reason == "optimal", seed
        assert outcome.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
    assert len(seeds) // 3 < feasible < len(seeds)
    assert (shared > len(seeds) // 20) == ("replicas" in features)


@pytest.mark.parametrize(
    ("features", "count"),
    [
        ("", 20),
        (ALL, 20),
        (f"{ALL} batch", 20),
        (LATE[0], 20),
        *(slow(features, 60) for features in COMBINATIONS),
    ],
)
def test_equals_exhaustive_search(features: str, count: int) -> None:
    """On graphs of up to 7 nodes and 5 devices, value and feasibility are the oracle's."""
    agree(range(count), features)


def test_walks_from_ideal_to_ideal_keep_count() -> None:
    """Cases in which the walk leaves a supernode on one branch of the tree after it has met it on another."""
    found = attempt(1141, "kinds replicas memory constraints", Settings())
    assert found is not None and found[1] is not None
    assert found[0].value == pytest.approx(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("features", COMBINATIONS)
@pytest.mark.parametrize("first", range(1000, 1500, 500))
def test_equals_exhaustive_search_on_many(features: str, first: int) -> None:
    """The same on thousands of cases."""
    agree(range(first, first + 500), features)


@pytest.mark.parametrize("seeds", [range(5000, 5026), slow(range(5026, 5150))])
@pytest.mark.parametrize("limit", [{"memory_budget": 1500}, {"step_limit": 20}, {"gap": 0.3}])
def test_limits_keep_bounds_true(limit: dict[str, float], seeds: range) -> None:
    """A run that ends early is never below the oracle, its bound never above, nor is a proof claimed."""
    early = 0
    for seed in seeds:
        features = COMBINATIONS[seed % len(COMBINATIONS)]
        found = attempt(seed, features, Settings(orders=1, **limit))  # type: ignore[arg-type]
        if found is None:
            continue
        outcome, best = found
        if best is None:
            assert outcome.parts is None, seed
            continue
        assert not outcome.infeasible, seed
        assert outcome.bound <= best * (1 + 1e-9) + 1e-12, seed
        assert outcome.value >= best * (1 - 1e-9) - 1e-12, seed
        assert outcome.bound >= outcome.value * (1 - limit.get("gap", 1.0) - 1e-9), seed
        if outcome.stop_reason == "optimal":
            assert outcome.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        early += outcome.stop_reason in ("gap", "heuristic")
    assert early > len(seeds) // 26
