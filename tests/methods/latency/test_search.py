"""The search keeps its books, returns what obeys the rules, and is no worse than what it is offered."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from partitioner import load
from partitioner.methods.latency._search_core import anneal
from partitioner.methods.latency._timing_core import LatencyControl, LatencyState, refresh
from partitioner.methods.latency.layout import (
    SubgraphLayout,
    latency,
    layout_of,
    model_of,
    obeys,
    ranked,
    scratch_of,
    state_of,
)
from partitioner.methods.latency.search import EFFORT, LatencySearch, solve_latency_search
from partitioner.methods.method import Settings
from partitioner.methods.places import device_kinds
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import SampleProblem
from tests.methods.latency.workloads import judged, latency_problem, random_layout, random_problems
from tests.methods.slow_parameters import slow
from tests.random_workloads import random_workload

MOVES = 4000


@pytest.mark.parametrize(("first", "count"), [(0, 60), slow(60, 90)])
def test_books_are_kept(first: int, count: int) -> None:
    """After thousands of moves from any start everything is as computed anew."""
    looked = 0
    for seed, _, _, problem in random_problems(first, count):
        start = random_layout(problem, np.random.default_rng(seed))
        start = SubgraphLayout(start.place, ranked(problem, start))
        rules = start.slot.max() < problem.subgraphs and together(problem, start)
        if not rules or np.isinf(latency(problem, start)):
            continue
        model = model_of(problem, problem.subgraphs)
        state, scratch = state_of(model, start), scratch_of(model)
        best, value = np.stack([state.place, state.unit]), np.array([np.inf])
        bits = np.array([seed + 1], dtype=np.uint64)
        anneal(
            model, state, scratch, LatencyControl(1.0, 1.0, 0.01, EFFORT.mixes[0]), bits, best, value, MOVES
        )
        before = books(state)
        refresh(model, state)
        assert np.allclose(before, books(state), atol=1e-9), seed
        assert np.isfinite(latency(problem, layout_of(model, state.place, state.unit))), seed
        if np.isfinite(value[0]):
            found = layout_of(model, best[0], best[1])
            assert obeys(problem, found), seed
            assert latency(problem, found) == pytest.approx(value[0], rel=1e-9, abs=1e-9), seed
        looked += 1
    assert looked > count // 4, looked


def books(state: LatencyState) -> Floats:
    """All that is kept, in a row."""
    return np.concatenate([state.ledger.ravel(), state.inside.ravel(), state.held, state.outer])


def together(problem: SampleProblem, layout: SubgraphLayout) -> bool:
    """Are groups on one device, and all nodes where they may run?"""
    pairs = {(int(g), int(d)) for g, d in zip(problem.group, layout.place, strict=True)}
    allowed = problem.allowed[device_kinds(problem)[layout.place], np.arange(problem.n)]
    return len(pairs) == len({g for g, _ in pairs}) and bool(allowed.all())


@pytest.mark.parametrize(("first", "count"), [(300, 24), slow(324, 96)])
def test_search_is_no_worse_than_what_it_is_offered(first: int, count: int) -> None:
    found = 0
    for seed, graph, devices, problem in random_problems(first, count):
        search = LatencySearch(problem, seed)
        start = random_layout(problem, np.random.default_rng(seed))
        search.offer(start)
        offered = search.value
        assert np.isinf(offered) or offered == latency(problem, start)
        search.run(lambda: True, MOVES)
        assert search.value <= offered
        if search.layout is not None:
            verdict = judged(graph, devices, problem, search.layout)
            assert verdict.feasible, (seed, verdict.violations)
            assert search.value == pytest.approx(verdict.value, rel=1e-9, abs=1e-9), seed
            found += 1
    assert found > count // 2, found


def best_of_all(problem: SampleProblem) -> float:
    """The least latency over every layout there is, by trying them all."""
    devices, slots = len(device_kinds(problem)), problem.subgraphs
    best = np.inf
    for seats in product(range(devices * slots), repeat=problem.n):
        layout = SubgraphLayout(np.array(seats) // slots, np.array(seats) % slots)
        if obeys(problem, layout):
            best = min(best, latency(problem, layout))
    return best


@pytest.mark.parametrize("subgraphs", [1, 2])
def test_small_workloads_are_solved(subgraphs: int) -> None:
    """The best of all layouts is found."""
    for seed in range(12):
        graph, devices = random_workload(np.random.default_rng(900 + seed), 5 if subgraphs == 1 else 4, 2)
        problem = latency_problem(graph, devices, subgraphs)
        outcome = solve_latency_search(problem, Settings())
        assert outcome.value == pytest.approx(best_of_all(problem), rel=1e-9, abs=1e-9), seed


@pytest.mark.parametrize(
    ("name", "printed"), [("bert3", 408.47), ("bert6", 438.06), ("bert24", 100.22), ("gnmt", 225.65)]
)
def test_as_good_as_the_published_integer_program(published: Path, name: str, printed: float) -> None:
    """The paper's column IP (Table 4), from the greedy split in seconds."""
    workload = load(published / "latency" / f"{name}_inference.json")
    problem = latency_problem(workload.graph, workload.devices)
    search = LatencySearch(problem, 0)
    search.run(lambda: search.value > printed + 0.005, 600_000)
    assert search.layout is not None
    verdict = judged(workload.graph, workload.devices, problem, search.layout)
    assert verdict.feasible
    assert verdict.value < printed + 0.006
