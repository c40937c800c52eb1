"""The exact program finds the chain with the least sum of largest forward and largest backward load."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, InfeasibleError, NoPlanFound, Plan, Workload, WorkloadError, solve
from tests.methods.slow_parameters import slow
from tests.oracle_gpipe import best_chain_by_pass
from tests.random_limits import FIELDS, random_constraints, with_layers
from tests.random_problems import cases
from tests.random_workloads import uneven_workload

BORDERS = (25, *range(400, 3201, 400))


def workload(seed: int, most_nodes: int, most_devices: int) -> tuple[Graph, Devices] | None:
    """A random workload, often with nodes without time or cheap transfers; None if it breaks a rule."""
    rng = np.random.default_rng(seed)
    graph, devices = uneven_workload(rng, most_nodes, most_devices)
    idle = rng.random(len(graph)) < rng.choice([0.0, 0.3, 0.6])
    cost = graph.cost * rng.choice([0.1, 0.3, 1.0])
    graph = replace(graph, time=np.where(idle, 0.0, graph.time), cost=cost)
    try:
        Workload(graph, devices)
    except WorkloadError:
        return None
    return graph, devices


def compared(seeds: range, most_nodes: int, most_devices: int, **options: Any) -> list[tuple[Plan, float]]:
    """Plans and the oracle's values of the feasible ones of random workloads; bounds and verdicts hold."""
    found = []
    for seed in seeds:
        given = workload(seed, most_nodes, most_devices)
        if given is None:
            continue
        best = best_chain_by_pass(*given)
        try:
            plan = solve(*given, "gpipe", **options)
        except InfeasibleError:
            assert best is None, seed
            continue
        except NoPlanFound:
            continue
        assert best is not None, seed
        assert plan.bound <= best * (1 + 1e-9) + 1e-12, seed
        assert plan.value >= best * (1 - 1e-9) - 1e-12, seed
        assert plan.status == "feasible" or plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        found.append((plan, best))
    return found


@pytest.mark.parametrize("seeds", [range(25), *(slow(range(*pair)) for pair in pairwise(BORDERS))])
def test_equals_exhaustive_search(seeds: range) -> None:
    """On graphs of up to 10 nodes with every feature mixed, each plan is the optimum, and proven."""
    found = compared(seeds, most_nodes=10, most_devices=3)
    assert all((plan.method, plan.split, plan.status) == ("dp", "chain", "optimal") for plan, _ in found)
    assert len(found) > len(seeds) // 2
    assert sum(len(plan.stages) > 1 for plan, _ in found) > len(seeds) // 8


@pytest.mark.parametrize("seeds", [range(10_000, 10_010), slow(range(10_010, 10_400))])
def test_equals_exhaustive_search_on_more_devices(seeds: range) -> None:
    """The same with up to five devices, where many states compete."""
    assert all(plan.status == "optimal" for plan, _ in compared(seeds, most_nodes=7, most_devices=5))


@pytest.mark.parametrize("seeds", [range(20_000, 20_010), slow(range(20_010, 20_200))])
@pytest.mark.parametrize("options", [{"memory_budget": 3000}, {"method": "dpl"}], ids=str)
def test_linear_orders_keep_bounds_true(seeds: range, options: dict[str, Any]) -> None:
    """Without room for the ideals, and by request: some plans are not proven to be the optimum."""
    statuses = {plan.status for plan, _ in compared(seeds, 9, 3, orders=2, **options)}
    assert statuses == {"feasible", "optimal"}


@pytest.mark.parametrize("seeds", [range(30_000, 30_010), slow(range(30_010, 30_400))])
def test_the_gap_is_kept(seeds: range) -> None:
    """A plan is within the gap that was asked for, and its bound is true."""
    found = compared(seeds, 10, 3, gap=0.2, orders=1)
    assert all(plan.gap <= 0.2 + 1e-9 for plan, _ in found)
    assert any(plan.stop_reason == "gap" for plan, _ in found)


@pytest.mark.parametrize("seeds", [range(40_000, 40_015), slow(range(40_015, 40_400))])
def test_a_step_limit_keeps_bounds_true(seeds: range) -> None:
    """A search that is cut short returns what it has."""
    found = compared(seeds, 10, 3, step_limit=60, orders=1)
    cut = [plan for plan, _ in found if plan.status != "optimal"]
    assert all(plan.stop_reason == "heuristic" for plan in cut)
    assert cut


@pytest.mark.parametrize("count", [3, slow(60)])
@pytest.mark.parametrize("fields", [*((field,) for field in FIELDS), FIELDS[::2], FIELDS[1::2]], ids=str)
def test_constraints_equal_exhaustive_search(fields: tuple[str, ...], count: int) -> None:
    """With limits on stages, pins and prohibitions."""
    for case in cases(50_000, count, most_nodes=7, most_devices=4):
        graph = with_layers(case.graph, case.rng)
        constraints = random_constraints(case.rng, graph, case.devices, fields)
        try:
            best = best_chain_by_pass(graph, case.devices, constraints)
            plan = solve(graph, case.devices, "gpipe", constraints=constraints)
        except WorkloadError:
            continue
        except InfeasibleError:
            assert best is None, case.seed
            continue
        assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), case.seed
        assert plan.status == "optimal"


def test_reports_are_about_the_whole_search() -> None:
    """Value and bound that are reported are those of the sum of both passes, and never get worse."""
    reports: list[Any] = []
    given = workload(20_001, 9, 3)
    assert given is not None
    plan = solve(*given, "gpipe", on_progress=reports.append)
    known = [report for report in reports if report.phase == "ideals" and np.isfinite(report.value)]
    assert known
    assert all(report.bound <= plan.value * (1 + 1e-9) for report in known)
    assert all(report.value >= plan.value * (1 - 1e-9) for report in known)
