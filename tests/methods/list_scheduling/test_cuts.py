"""Memory that is too small for connected tasks forces a transfer, and so does work."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partitioner import Devices, Graph, Transfers, solve
from partitioner.methods.list_scheduling.bound import makespan_bound
from partitioner.methods.list_scheduling.cuts import cut_bound
from partitioner.methods.list_scheduling.windows import windows
from tests.methods.list_scheduling.cases import problem_of

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
