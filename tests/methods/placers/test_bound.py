"""The bound on makespans exceeds no makespan, and is above path and shared work where both matter.

Memory that is too small for connected tasks forces a transfer, and so does work.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers, solve
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.latency.path import longest_path
from partitioner.methods.method import Settings
from partitioner.methods.placers.bound import cut_bound, makespan_bound
from partitioner.methods.placers.heft import place_heft
from partitioner.methods.placers.refine import RefinementEffort, refined
from partitioner.methods.placers.timing import makespan
from partitioner.methods.placers.windows import windows
from tests.methods.placers.cases import cases, problem_of
from tests.oracle_makespan import least_makespan

SLOPE = Transfers(slope=1.0)
CHAIN = Graph.from_arrays(
    {"accelerator": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], cost=[5.0, 2.0, 7.0], size=1.0
)


def bound_of(graph: Graph, devices: Devices) -> float:
    """The bound from cuts alone."""
    problem = problem_of(graph, devices, SLOPE)
    least = problem.tasks.time.min(axis=0)
    return cut_bound(problem.tasks, least, *windows(problem.tasks, least))


@pytest.mark.parametrize(
    ("memory", "bound"), [(4.0, 4.0), (3.0, 6.0), (2.0, 6.0), (1.0, 11.0), (0.9, math.inf)]
)
def test_a_chain_that_does_not_fit_is_cut(memory: float, bound: float) -> None:
    """Two devices pay for the cheapest edge, four for all of them, of which the dearest one counts."""
    assert bound_of(CHAIN, Devices.accelerated(4, memory=memory)) == bound


def test_the_bound_on_a_chain_that_is_cut_once_is_met() -> None:
    plan = solve(CHAIN, Devices.accelerated(2, memory=2.0), "makespan", transfers=SLOPE)
    assert (plan.value, plan.bound, plan.status) == (6.0, 6.0, "optimal")


def test_an_edge_inside_a_group_is_not_cut() -> None:
    graph = Graph.from_arrays(
        {"accelerator": [1.0] * 4},
        [(0, 1), (1, 2), (2, 3)],
        cost=[5.0, 2.0, 7.0],
        size=1.0,
        color=[-1, 0, 0, -1],
    )
    assert bound_of(graph, Devices.accelerated(2, memory=3.0)) == 9.0


def test_much_work_is_shared_or_takes_its_time() -> None:
    graph = Graph.from_arrays({"accelerator": [3.0, 3.0, 3.0]}, [(0, 2), (1, 2)], cost=[2.0, 4.0])
    assert bound_of(graph, Devices.accelerated(2)) == 8.0


def test_tasks_that_are_not_connected_pay_nothing() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 4}, [(0, 1), (2, 3)], cost=9.0, size=1.0)
    assert bound_of(graph, Devices.accelerated(2, memory=2.0)) == 2.0


def test_the_bound_rises_to_a_multiple_of_the_unit() -> None:
    times = np.array([2.0, 2.0, 2.0])
    for factor, bound in ((1.0, 4.0), (0.25, 1.0), (math.pi, 3.0 * math.pi)):
        graph = Graph.from_arrays({"accelerator": times * factor}, [])
        assert makespan_bound(problem_of(graph, Devices.accelerated(2), SLOPE)) == pytest.approx(bound)


ROUNDING = 1 + 1e-9
MANY = [(5_015, 45), *((first, 500) for first in range(6_000, 7_500, 500))]


@pytest.mark.parametrize(
    ("first", "count"),
    [(5_000, 15), *(pytest.param(*some, marks=pytest.mark.slow) for some in MANY)],
)
def test_it_is_at_most_the_best_of_all_placements_and_orders(first: int, count: int) -> None:
    tight = tried = 0
    for seed, graph, devices, transfers in cases(first, count, 4):
        best = least_makespan(graph, devices, transfers)
        bound = makespan_bound(problem_of(graph, devices, transfers))
        assert best is None or bound <= best * ROUNDING, seed
        tried += best is not None
        tight += best is not None and bound >= best * (1 - 1e-9)
    assert tried > count / 3
    assert tight > tried / 2


@pytest.mark.parametrize(
    ("first", "count"),
    [
        (10_000, 60),
        *(pytest.param(*some, marks=pytest.mark.slow) for some in ((10_060, 340), (20_000, 2_000))),
    ],
)
def test_it_is_at_most_what_a_search_finds(monkeypatch: pytest.MonkeyPatch, first: int, count: int) -> None:
    monkeypatch.setattr("partitioner.methods.placers.refine.EFFORT", RefinementEffort(moves=100))
    tried = 0
    for seed, graph, devices, _ in cases(first, count, 8, 4):
        problem = problem_of(graph, devices, Transfers(slope=0.0))
        found = place_heft(problem.tasks, Settings())
        if found is not None:
            found = refined(problem.tasks, found, Settings())
            value = makespan(problem.tasks, found.device, found.order)
            assert makespan_bound(problem) <= value * ROUNDING, seed
            tried += 1
    assert tried > count * 3 / 8


def test_work_between_a_first_and_a_last_task_counts_beside_them() -> None:
    edges = [(0, v) for v in range(1, 5)] + [(v, 5) for v in range(1, 5)]
    graph = Graph.from_arrays({"accelerator": [1.0] * 6}, edges, cost=0.0)
    problem = problem_of(graph, Devices.accelerated(2), Transfers())
    assert (longest_path(problem), relax(problem).bound) == (3.0, 3.0)
    assert makespan_bound(problem) == pytest.approx(4.0)


def test_a_group_runs_on_one_device() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0, 1.0]}, [], size=0.0, color=[0, 0, 0])
    assert makespan_bound(problem_of(graph, Devices.accelerated(3), Transfers())) == pytest.approx(3.0)
