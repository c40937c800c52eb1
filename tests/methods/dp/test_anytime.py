"""The anytime search finds the optimum over all chains where it can exhaust them, and never claims more.

What the search decides about a threshold is true, in both directions, whatever the order of candidates.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, InfeasibleError, NoPlanFound, Plan, WorkloadError, evaluate, solve
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp import exact
from partitioner.methods.dp.anytime import Decider, Effort
from partitioner.methods.loads import value_of
from partitioner.methods.method import Settings
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import fitted, uneven_workload

ENOUGH = Effort(10**9, 10**9, 10_000)
LITTLE = Effort(10**9, 6, 2)


@pytest.mark.parametrize("seeds", [range(30), slow(range(30, 800))])
@pytest.mark.parametrize("backwards", [False, True])
def test_thresholds_around_the_optimum(backwards: bool, seeds: range) -> None:
    """At the optimum a chain is found; just below it, exhaustion refutes, and too little effort does not."""
    refuted = undecided = 0
    for seed in seeds:
        graph, devices = uneven_workload(np.random.default_rng(seed), 9, 3)
        best = best_chain_value(graph, devices)
        problem = contract_to(ChainProblem, fitted(graph, devices), devices)
        relaxation = relax(problem)
        if best is None or best <= 0 or not problem.lossless or np.isinf(relaxation.bound):
            continue
        decider = Decider(problem, relaxation, backwards)
        found = decider.decide(best, ENOUGH, Settings(), seed)
        assert found.stages is not None and not found.refuted, seed
        assert value_of(problem, found.stages) == pytest.approx(best, rel=1e-9), seed
        below = decider.decide(best * (1 - 1e-9), ENOUGH, Settings(), seed)
        assert below.refuted and below.stages is None, seed
        refuted += 1
        hurried = decider.decide(best * (1 - 1e-9), LITTLE, Settings(), seed)
        assert hurried.stages is None, seed
        undecided += not hurried.refuted
    assert refuted > len(seeds) // 3
    assert undecided > 0


def test_a_pool_that_is_full_decides_nothing() -> None:
    """With room for two states neither a chain nor a proof is claimed."""
    graph, devices = uneven_workload(np.random.default_rng(1), 9, 3)
    problem = contract_to(ChainProblem, fitted(graph, devices), devices)
    decider = Decider(problem, relax(problem), backwards=False)
    best = best_chain_value(graph, devices)
    assert best is not None
    verdict = decider.decide(best * (1 - 1e-9), ENOUGH, Settings(memory_budget=1), 0)
    assert verdict.stages is None
    assert not verdict.refuted or verdict.steps <= 2 * problem.n


ONE_STATE = 200  # bytes: no attempt gets further than the states after the empty ideal


@pytest.fixture(autouse=True)
def _without_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "lattice_within", lambda *_, **__: None)


def solved(seed: int, most_nodes: int, most_devices: int, **options: Any) -> tuple[Plan | None, float | None]:
    """The plan and the oracle's value of a random workload, None where there is none."""
    graph, devices = uneven_workload(np.random.default_rng(seed), most_nodes, most_devices)
    best = best_chain_value(graph, devices)
    try:
        plan = solve(graph, devices, method="dp", orders=1, **options)
    except (WorkloadError, InfeasibleError):
        return None, best
    evaluation = evaluate(graph, devices, plan.placement)
    assert evaluation.feasible and evaluation.shape.name == "chain" and evaluation.value == plan.value
    return plan, best


@pytest.mark.parametrize(
    ("nodes", "devices", "seeds"),
    [
        (10, 3, range(100)),
        (7, 5, range(5_000, 5_060)),
        slow(10, 3, range(100, 1_100)),
        slow(7, 5, range(5_060, 5_500)),
    ],
)
def test_exhaustion_equals_exhaustive_search(nodes: int, devices: int, seeds: range) -> None:
    """With every feature mixed, forwards and backwards: value, proof and feasibility are the oracle's."""
    feasible = 0
    for seed in seeds:
        plan, best = solved(seed, nodes, devices, deterministic=True)
        assert (plan is None) == (best is None), seed
        if plan is not None and best is not None:
            feasible += 1
            assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
            assert plan.bound <= best * (1 + 1e-9), seed
    assert feasible > len(seeds) // 2


@pytest.mark.parametrize("seeds", [range(20_000, 20_030), slow(range(20_030, 20_300))])
def test_without_room_for_states_bounds_stay_true(seeds: range) -> None:
    """Never below the oracle, the bound never above, and the plan says why it is not proven."""
    reasons, unproven = set(), 0
    for seed in seeds:
        try:
            plan, best = solved(seed, 10, 3, memory_budget=ONE_STATE, deterministic=True)
        except NoPlanFound:
            continue
        assert (plan is None) == (best is None), seed
        if plan is not None and best is not None:
            assert plan.bound <= best * (1 + 1e-9) <= plan.value * (1 + 2e-9) + 1e-12, seed
            if plan.status != "optimal":
                unproven += 1
                reasons |= set(plan.notes)
    assert unproven > len(seeds) // 25
    assert any("ideals" in reason for reason in reasons)


def wide(n: int, seed: int) -> Graph:
    """Nodes that hardly depend on one another, of times that hardly fit together."""
    rng = np.random.default_rng(seed)
    edges = [(v, v + n // 2) for v in range(n // 2)]
    return Graph.from_arrays({"accelerator": rng.integers(20, 90, n).astype(float)}, edges)


def test_it_goes_on_until_the_time_is_over() -> None:
    began = time.perf_counter()
    plan = solve(wide(60, 3), Devices.accelerated(25), method="dp", time_limit=1.0)
    took = time.perf_counter() - began
    assert plan.status == "optimal" or took > 0.9
    assert plan.status == "optimal" or plan.stop_reason == "time_limit"


def test_bounds_round_up_to_the_unit_of_all_costs() -> None:
    """Times of 3, 3 and 4 hundredths: no two devices share 10 in halves of less than 6."""
    graph = Graph.from_arrays({"accelerator": [0.03, 0.03, 0.04]}, [])
    plan = solve(graph, Devices.accelerated(2), method="dp")
    assert (plan.value, plan.status) == (0.06, "optimal")
