"""The exact search finds the least makespan from nothing, in either direction, and proves it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers
from partitioner.methods.exact_makespan import both_ways
from partitioner.methods.exact_makespan.both_ways import SearchBothWays
from partitioner.methods.method import Settings
from partitioner.methods.placers.timing import makespan
from tests.methods.placers.cases import cases, problem_of
from tests.oracle_makespan import least_makespan
from tests.oracle_paper_makespan import paper_makespan
from tests.random_tasks import task_cases

CLOSE = 1e-9
SLOW = [pytest.param(first, 250, marks=pytest.mark.slow) for first in range(1_000, 3_000, 250)]


def searched(graph: Graph, devices: Devices, transfers: Transfers) -> SearchBothWays:
    """The search from nothing, ended."""
    search = SearchBothWays(problem_of(graph, devices, transfers), Settings())
    search.run(math.inf)
    assert search.ended or search.value == search.bound == 0.0
    return search


def assert_least(graph: Graph, devices: Devices, transfers: Transfers) -> bool:
    """Compare value and bound without contention to the oracle; return whether there is a plan."""
    alone = Transfers(transfers.slope, transfers.intercept)
    best, search = paper_makespan(graph, devices, alone), searched(graph, devices, alone)
    assert search.value == pytest.approx(best, rel=CLOSE)
    assert search.best is not None or best == math.inf
    assert search.bound == pytest.approx(best, rel=CLOSE) or best == math.inf
    return search.best is not None


@pytest.mark.parametrize(("first", "count"), [(0, 20), *SLOW])
def test_it_finds_the_least_of_all_placements_and_orders(first: int, count: int) -> None:
    found = sum(assert_least(*case[1:]) for case in cases(first, count, 4))
    assert found > count / 3


@pytest.mark.parametrize(("first", "count"), [(0, 15), *SLOW])
def test_it_knows_levels_and_several_tensors_of_a_node(first: int, count: int) -> None:
    found = sum(
        assert_least(case.graph, case.devices, case.transfers) for case in task_cases(first, count, 4, 3)
    )
    assert found > count / 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 20_200, 50))
def test_it_finds_the_least_of_five_operators(first: int) -> None:
    assert sum(assert_least(*case[1:]) for case in cases(first, 50, 5)) > 10


@pytest.mark.parametrize(("first", "count"), [(40, 10), *SLOW[:4]])
def test_with_contention_its_bound_is_at_most_the_optimum(first: int, count: int) -> None:
    for seed, graph, devices, transfers in cases(first, count, 4):
        shared = Transfers(transfers.slope, transfers.intercept, contention=True)
        best, search = least_makespan(graph, devices, shared), searched(graph, devices, shared)
        assert (best is None) == (search.best is None), seed
        if best is not None:
            assert search.bound <= best * (1 + CLOSE), seed
            assert search.value >= best * (1 - CLOSE), seed


@pytest.mark.parametrize("reverse", [False, True])
def test_each_direction_alone_finds_it(monkeypatch: pytest.MonkeyPatch, reverse: bool) -> None:
    one = both_ways._Direction
    monkeypatch.setattr(both_ways, "_Direction", lambda tasks, _, memory: one(tasks, reverse, memory))
    for case in cases(500, 10, 4):
        assert_least(*case[1:])


def test_it_finds_the_same_without_room_to_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(both_ways, "EFFORT", replace(both_ways.EFFORT, memory=0))
    for case in cases(600, 10, 4):
        assert_least(*case[1:])


def test_what_it_finds_takes_the_time_that_it_says() -> None:
    for seed, graph, devices, transfers in cases(700, 20, 9):
        search = searched(graph, devices, Transfers(transfers.slope, transfers.intercept))
        if search.best is not None:
            value = makespan(search.tasks, search.best.device, search.best.order)
            assert (value, search.tasks.hold(search.best.device)) == (search.value, True), seed


def test_a_gap_ends_it_sooner() -> None:
    rng = np.random.default_rng(1)
    times, edges = rng.random(12), [(v, 11) for v in range(11)]
    graph = Graph.from_arrays({"accelerator": times}, edges, cost=rng.random(11))
    problem = problem_of(graph, Devices.accelerated(3), Transfers(slope=1.0))
    steps, bounds = [], []
    for gap in (0.0, 0.2):
        search = SearchBothWays(problem, Settings(gap=gap))
        search.run(math.inf)
        steps.append(search.steps)
        bounds.append(search.bound / search.value)
    assert steps[1] < steps[0]
    assert 0.8 * (1 - CLOSE) <= bounds[1] < bounds[0] == pytest.approx(1.0)


def test_with_a_gap_its_bound_is_true_where_times_are_whole() -> None:
    rng = np.random.default_rng(2)
    for seed in range(12):
        edges = [(u, v) for v in range(7) for u in range(v) if rng.random() < 0.4]
        cost = rng.integers(0, 6, len(edges))
        graph = Graph.from_arrays({"accelerator": rng.integers(1, 9, 7)}, edges, cost=cost)
        problem = problem_of(graph, Devices.accelerated(2), Transfers(slope=1.0))
        found = [SearchBothWays(problem, Settings(gap=gap)) for gap in (0.0, 0.03, 0.3)]
        for search in found:
            search.run(math.inf)
            assert search.bound <= found[0].value <= search.value, seed
            assert search.bound >= search.value * (1 - search.settings.gap) * (1 - CLOSE), seed
