"""The exact dynamic program finds the optimum over all chains, and tells infeasible from feasible."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Plan,
    Workload,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.base.clock import Clock
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp import exact
from partitioner.methods.dp.forms import identical_kinds, merged_kinds
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.method import Settings
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.variants import ChainProblem
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import fitted, uneven_workload


def with_twins(rng: np.random.Generator, devices: Devices) -> Devices:
    """Return the devices, of each kind some under another name."""
    kinds = []
    for kind in devices.kinds:
        first = int(rng.integers(kind.count + 1))
        twin = replace(kind, name=f"{kind.name} twin", times=kind.row, count=kind.count - first)
        kinds += [replace(kind, count=first), twin]
    return replace(devices, kinds=tuple(kinds[i] for i in rng.permutation(len(kinds))))


def plan_of(graph: Graph, devices: Devices, method: str) -> Plan | None:
    try:
        return solve(graph, devices, method=method)
    except (WorkloadError, InfeasibleError, NoPlanFound) as error:
        assert method == "dpl" or not isinstance(error, NoPlanFound)
        return None


@pytest.mark.parametrize("seeds", [range(20), slow(range(20, 400))])
@pytest.mark.parametrize("method", ["dp", "dpl"])
def test_twins_change_no_value(seeds: range, method: str) -> None:
    """The value is that of the oracle for dp, and plans are plans on the kinds as they were given."""
    feasible = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, 8, 4)
        twins = with_twins(rng, devices)
        plan, best = plan_of(graph, twins, method), best_chain_value(graph, devices)
        assert (plan is None) == (best is None) or method == "dpl", seed
        if plan is None or best is None:
            continue
        feasible += 1
        assert evaluate(graph, twins, plan.placement).feasible, seed
        assert plan.value >= best * (1 - 1e-9) - 1e-12, seed
        if method == "dp":
            assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
            again = solve(graph, twins, warm_start=plan, method=method)
            assert again.value == plan.value
    assert feasible > len(seeds) // 2


@pytest.mark.parametrize(
    ("changed", "classes"),
    [
        ({}, [0, 0]),
        ({"memory": 3.0}, [0, 1]),
        ({"time_factor": 2.0}, [0, 1]),
        ({"transfer_factor": 2.0}, [0, 1]),
        ({"pays_communication": False}, [0, 1]),
        ({"count": 3}, [0, 0]),
    ],
)
def test_only_identical_kinds_are_merged(changed: dict[str, float], classes: list[int]) -> None:
    graph = Graph.from_arrays({"a": [1.0, 2.0, 3.0]}, [(0, 1), (1, 2)], cost=1.0, size=1.0)
    kind = DeviceKind("a", 1)
    twin = replace(kind, name="b", times="a", **changed)  # type: ignore[arg-type]
    devices = Devices((kind, twin))
    problem = contract(fitted(graph, devices), devices)
    assert isinstance(problem, ChainProblem)
    group = identical_kinds(problem)
    assert group.tolist() == classes
    assert merged_kinds(problem, group).count.sum() == problem.count.sum()


BORDERS = (60, *range(400, 3201, 400))


def solved(seed: int, most_nodes: int, most_devices: int, **options: Any) -> tuple[Plan | None, float | None]:
    """The plan and the oracle's value of a random workload, None where there is none."""
    graph, devices = uneven_workload(np.random.default_rng(seed), most_nodes, most_devices)
    best = best_chain_value(graph, devices)
    try:
        plan = solve(graph, devices, method="dp", **options)
    except (WorkloadError, InfeasibleError):
        return None, best
    evaluation = evaluate(graph, devices, plan.placement)
    assert evaluation.feasible
    assert evaluation.shape.name == "chain"
    assert evaluation.value == plan.value
    return plan, best


@pytest.mark.parametrize("seeds", [range(60), *(slow(range(*pair)) for pair in pairwise(BORDERS))])
def test_equals_exhaustive_search(seeds: range) -> None:
    """On graphs of up to 10 nodes with every feature mixed, value and feasibility are the oracle's."""
    feasible = 0
    for seed in seeds:
        plan, best = solved(seed, most_nodes=10, most_devices=3)
        if plan is None or best is None:
            assert plan is None, seed
            assert best is None, seed
            continue
        feasible += 1
        assert plan.status == "optimal", seed
        assert plan.bound == plan.value
        assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
    assert len(seeds) // 2 < feasible < len(seeds)


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("seeds", [range(40_000, 40_040), slow(range(40_160, 40_240))])
def test_many_ideals_are_enumerated_after_a_search_without_them(
    seeds: range, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever that search ends, the value, the proof and the feasibility are the oracle's."""
    monkeypatch.setattr(exact, "EFFORT", replace(exact.EFFORT, few=0, early_rounds=rounds))
    enumerated = 0
    for seed in seeds:
        plan, best = solved(seed, most_nodes=10, most_devices=3, orders=1)
        assert (plan is None) == (best is None), seed
        if plan is not None and best is not None:
            assert plan.status == "optimal", seed
            assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
            enumerated += "ideals" in plan.statistics
    assert enumerated > (len(seeds) // 8 if rounds == 0 else 0)


@pytest.mark.parametrize("seeds", [range(10_000, 10_040), slow(range(10_040, 10_400))])
def test_equals_exhaustive_search_on_more_devices(seeds: range) -> None:
    """The same with up to five devices, where many states compete."""
    for seed in seeds:
        plan, best = solved(seed, most_nodes=7, most_devices=5)
        assert (plan is None) == (best is None), seed
        if plan is not None and best is not None:
            assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed


@pytest.mark.parametrize("seeds", [range(20_000, 20_020), slow(range(20_020, 20_500))])
def test_a_tiny_memory_budget_keeps_bounds_true(seeds: range) -> None:
    """Without room for the ideals: never below the oracle, the bound never above, and it says why."""
    reasons, fallbacks = set(), 0
    for seed in seeds:
        try:
            plan, best = solved(seed, 9, 3, memory_budget=200, deterministic=True)
        except NoPlanFound:
            continue
        assert plan is None or best is not None, seed
        assert best is None or plan is not None, seed
        if plan is not None and best is not None:
            assert plan.bound <= best * (1 + 1e-9) <= plan.value * (1 + 2e-9) + 1e-12, seed
            if plan.status != "optimal":
                fallbacks += 1
                reasons |= {note.split(",")[0] for note in plan.notes}
    assert fallbacks > len(seeds) // 25
    assert any("ideals" in reason for reason in reasons)


@pytest.mark.parametrize("seeds", [range(30_080, 30_120), slow(range(30_000, 30_400))])
def test_the_gap_is_kept(seeds: range) -> None:
    """With a gap asked for, the plan is within it of the oracle, the bound true, some runs stop early."""
    early = suboptimal = 0
    for seed in seeds:
        gap = 0.02 + 0.4 * (seed % 10) / 10
        plan, best = solved(seed, 10, 3, gap=gap, orders=1)
        if plan is not None and best is not None:
            assert plan.gap <= gap + 1e-9
            assert plan.bound <= best * (1 + 1e-9) + 1e-12, seed
            assert plan.value * (1 - gap) <= best * (1 + 1e-9) + 1e-12, seed
            early += plan.stop_reason == "gap" and "ideals" in plan.statistics
            suboptimal += plan.value > best * (1 + 1e-9)
    assert early > len(seeds) // 200
    assert suboptimal > len(seeds) // 80


def test_a_bound_that_is_met_up_to_rounding_is_a_proof() -> None:
    """Where the optimum equals the lower bound but for the last digit, the plan is optimal."""
    plan, best = solved(100_038, most_nodes=10, most_devices=3)
    assert plan is not None
    assert plan.value == best == 11.5
    assert plan.status == "optimal"


def test_a_stage_that_receives_what_it_sent_before_may_have_a_larger_load() -> None:
    """Under duplex the last stage may send 6 and receive 8, or receive 14: the second stage must be small."""
    edges, cost = [(0, 3), (1, 2), (2, 3), (2, 4)], [8.0, 1.0, 6.0, 6.0]
    time, backward, color = [13.0, 6.0, 0.0, 8.0, 0.0], [0, 0, 0, 0, 1], [None, 0, None, None, 0]
    graph = Graph.from_arrays({"accelerator": time}, edges, cost, backward=backward, color=color)
    devices = Devices.accelerated(3, communication="duplex")
    assert solve(graph, devices).value == best_chain_value(graph, devices) == 13.0


def test_a_step_limit_ends_in_a_plan_that_says_so() -> None:
    """A search cut short returns what it has, with a bound that holds."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        graph, devices = uneven_workload(rng, 10, 3)
        best = best_chain_value(graph, devices)
        try:
            plan = solve(Workload(graph, devices).graph, devices, step_limit=1, orders=1)
        except (WorkloadError, InfeasibleError, NoPlanFound):
            continue
        assert best is not None
        assert plan.bound <= best * (1 + 1e-9) <= plan.value * (1 + 2e-9)
        if plan.status != "optimal":
            assert plan.stop_reason == "heuristic"
            assert "stopped after" in plan.notes[0]


@pytest.mark.parametrize("seeds", [range(40), slow(range(40, 400))])
def test_the_covering_bound_holds_for_all_chains(seeds: range) -> None:
    """From a chain of twice the best value on it bounds the best one, mostly within 5 % of it."""
    close = compared = 0
    for seed in seeds:
        graph, devices = uneven_workload(np.random.default_rng(seed), 8, 4)
        best = best_chain_value(graph, devices)
        if best is None or best == 0:
            continue
        problem: Any = contract(fitted(graph, devices), devices, Goal())
        settings = Settings(clock=Clock(20.0))
        climb = exact.Climb(LinearSearch(problem, relax(problem), settings), settings, False, True)
        climb.linear.value = 2 * best
        exact._covering(climb)
        assert climb.linear.bound <= best * (1 + 1e-9), seed
        close += climb.linear.bound >= 0.95 * best
        compared += 1
    assert compared > len(seeds) // 2
    assert close > 0.5 * compared
