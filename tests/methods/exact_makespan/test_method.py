"""Method exact proves what the portfolio leaves open, keeps its limits, and leaves large graphs alone."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers, solve
from partitioner.methods.exact_makespan import method
from partitioner.methods.exact_makespan.method import EFFORT, solve_exact_makespan
from partitioner.methods.method import Outcome, Settings
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.plan_value import timed
from partitioner.problem.variants import OperatorNodes
from tests.methods.placers.cases import problem_of

SLOPE = Transfers(slope=1.0)


def forked(n: int, seed: int = 0) -> Graph:
    """Operators of whole times between a first and a last one."""
    rng = np.random.default_rng(seed)
    edges = [(0, v) for v in range(1, n - 1)] + [(v, n - 1) for v in range(1, n - 1)]
    return Graph.from_arrays(
        {"accelerator": rng.integers(1, 9, n)}, edges, cost=rng.integers(1, 9, len(edges))
    )


def layered(n: int, seed: int = 0) -> Graph:
    """Operators of many successors, which no search of this length ends with."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for v in range(n) for u in range(max(0, v - 20), v - 5) if rng.random() < 0.15]
    cost = rng.random(len(edges)) * 3
    return Graph.from_arrays({"accelerator": 1 + rng.random(n)}, edges, cost=cost)


def on_one_device(problem: OperatorNodes, settings: Settings) -> Outcome:
    """A poor plan instead of the portfolio's."""
    found = Found(np.zeros(problem.n, dtype=np.int64), np.arange(problem.n))
    return timed(problem, settings, found, 0.0)


@pytest.mark.slow
def test_it_proves_what_the_portfolio_leaves_open() -> None:
    graph, devices = forked(12), Devices.accelerated(3)
    before = solve(graph, devices, "makespan", method="portfolio", transfers=SLOPE)
    plan = solve(graph, devices, "makespan", transfers=SLOPE)
    assert (before.status, plan.status, plan.method) == ("feasible", "optimal", "exact")
    assert before.bound < plan.bound == plan.value <= before.value


def test_it_finds_better_plans_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    best = solve(forked(10), Devices.accelerated(3), "makespan", transfers=SLOPE)
    monkeypatch.setattr(method, "solve_portfolio", on_one_device)
    for first in (0, EFFORT.first):
        monkeypatch.setattr(method, "EFFORT", replace(EFFORT, first=first))
        plan = solve(forked(10), Devices.accelerated(3), "makespan", transfers=SLOPE)
        assert (plan.value, plan.status) == (best.value, "optimal")


def test_it_says_when_it_ended_before_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "EFFORT", replace(EFFORT, first=500, steps=1_000))
    monkeypatch.setattr(method, "solve_portfolio", on_one_device)
    plan = solve(layered(40), Devices.accelerated(4), "makespan", transfers=SLOPE)
    assert (plan.status, plan.stop_reason) == ("feasible", "heuristic")
    assert any(note.startswith("the exact search ended after") for note in plan.notes)


@pytest.mark.slow
def test_it_uses_the_time_that_it_is_given_and_no_more() -> None:
    begun = time.perf_counter()
    plan = solve(layered(40), Devices.accelerated(4), "makespan", transfers=SLOPE, time_limit=4.0)
    assert plan.stop_reason == "time_limit"
    assert 3.5 < time.perf_counter() - begun < 6.0


@pytest.mark.slow
def test_an_event_ends_it() -> None:
    stop = threading.Event()
    threading.Timer(2.0, stop.set).start()
    plan = solve(layered(40), Devices.accelerated(4), "makespan", transfers=SLOPE, time_limit=60.0, stop=stop)
    assert plan.stop_reason == "interrupted"


@pytest.mark.slow
def test_with_contention_it_says_what_the_bound_leaves_out() -> None:
    shared, devices = Transfers(slope=2.0, contention=True), Devices.accelerated(4)
    plan = solve(forked(8), devices, "makespan", transfers=shared)
    alone = solve(forked(8), devices, "makespan", transfers=Transfers(slope=2.0))
    assert (alone.status, plan.bound) == ("optimal", alone.value)
    assert plan.value > plan.bound
    assert any("transfers wait for one another" in note for note in plan.notes)


def test_large_graphs_keep_the_plan_of_the_portfolio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "solve_portfolio", on_one_device)
    problem = problem_of(layered(EFFORT.largest + 1), Devices.accelerated(2), SLOPE)
    outcome, before = solve_exact_makespan(problem, Settings()), on_one_device(problem, Settings())
    assert (outcome.value, outcome.bound) == (before.value, before.bound)
    assert any(note.startswith("the graph has more than") for note in outcome.notes)


def test_deterministic_runs_are_the_same() -> None:
    plans = [
        solve(forked(9, 3), Devices.accelerated(3), "makespan", transfers=SLOPE, deterministic=True)
        for _ in range(2)
    ]
    assert plans[0].placement == plans[1].placement
    assert plans[0].execution_order == plans[1].execution_order


def test_that_nothing_fits_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 5}, [], size=[3.5, 3.5, 2.0, 2.0, 2.0])
    problem = problem_of(graph, Devices.accelerated(2, memory=6.5), SLOPE)
    assert solve_exact_makespan(problem, Settings()).infeasible
    monkeypatch.setattr(method, "solve_portfolio", nothing_found)
    monkeypatch.setattr(method, "EFFORT", replace(EFFORT, first=0))
    assert solve_exact_makespan(problem, Settings()).infeasible


def nothing_found(problem: OperatorNodes, settings: Settings) -> Outcome:
    """The outcome of a portfolio that gives up."""
    return Outcome(problem, None, np.inf, 0.0, settings.stop_reason)


def test_it_starts_from_a_given_placement() -> None:
    graph, given = forked(8), dict.fromkeys(range(8), "accelerator0")
    plan = solve(graph, Devices.accelerated(2), "makespan", transfers=SLOPE, warm_start=given)
    assert plan.notes[0].startswith("started from ")
    assert plan.status == "optimal"


def test_one_operator_is_searched_too() -> None:
    problem = problem_of(Graph.from_arrays({"accelerator": [2.0]}, []), Devices.accelerated(2), SLOPE)
    outcome = solve_exact_makespan(problem, Settings())
    assert (outcome.value, outcome.bound, outcome.stop_reason) == (2.0, 2.0, "optimal")
