"""The covering bound never exceeds the optimum, never falls below the relaxation, and is often exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph
from partitioner.methods.baselines.trivial import solve_single
from partitioner.methods.bounds.cover import Covering
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.method import Settings
from partitioner.methods.units import load_unit, rounded_up
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import PartsProblem
from tests.contracted import contract_to
from tests.measures import MEASURES
from tests.methods.slow_parameters import slow
from tests.oracle import best_values
from tests.random_workloads import fitted, random_workload, uneven_workload


def bound_of(problem: PartsProblem, value: float, gap: float = 0.0, stop: bool = False) -> float:
    covering = Covering(problem, relax(problem))
    covering.rise(value, gap, lambda: stop, lambda bound: None)
    return covering.bound


@pytest.mark.parametrize(
    ("objective", "split", "count"),
    [
        ("throughput", "free", 40),
        ("gpipe", "convex", 40),
        *(slow(*goal, 150) for goal in product(("throughput", "gpipe"), ("free", "convex"))),
    ],
)
def test_the_bound_is_a_bound(objective: str, split: str, count: int) -> None:
    """On random workloads with every feature it stays between the relaxation and the optimum."""
    rng = np.random.default_rng(len(split))
    raised = compared = 0
    for _ in range(count):
        graph, devices = uneven_workload(rng, 7)
        cpus, backward = bool(rng.integers(2)), bool(rng.integers(2))
        best = best_values(graph, devices, objective, cpus, backward)[split]
        problem = contract_to(
            PartsProblem,
            fitted(graph, devices),
            devices,
            Goal(MEASURES[objective], split, (), cpus, backward),
        )
        floor = relax(problem).bound
        if best is None or best <= floor:
            continue
        bound = bound_of(problem, best * rng.choice([1.0, 1.2]))
        assert floor <= bound <= best * (1 + 1e-9)
        raised += bound > floor * (1 + 1e-6)
        compared += 1
    assert compared > count // 15
    assert raised > compared / 8


@pytest.mark.parametrize("count", [15, slow(300)])
def test_with_a_unit_the_bound_is_whole(count: int) -> None:
    """Where loads are whole numbers it is one, too, at most the optimum, and no lower than without a unit."""
    rng = np.random.default_rng(11)
    compared = 0
    for _ in range(count):
        graph, devices = uneven_workload(rng, 7)
        problem = contract_to(PartsProblem, fitted(graph, devices), devices, Goal(split="convex"))
        unit, best = load_unit(problem), best_values(graph, devices)["convex"]
        if unit == 0.0 or best is None or best <= relax(problem).bound:
            continue
        covering = Covering(problem, relax(problem), unit=unit)
        covering.rise(best * 1.2, 0.0, lambda: False, lambda bound: None)
        assert covering.bound <= best * (1 + 1e-9)
        assert rounded_up(covering.bound, unit) >= bound_of(problem, best * 1.2) * (1 - 2e-3)
        held = covering.held(best)
        if held is not None:
            assert held[0].sum() <= problem.count @ held[1] * (1 + 1e-9)
        compared += 1
    assert compared > count / 15


@pytest.mark.parametrize("count", [10, slow(30)])
def test_the_gap_is_the_highest_that_is_tried(count: int) -> None:
    """No more is proven than was asked for."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        graph, devices = uneven_workload(rng, 7)
        problem = contract_to(PartsProblem, fitted(graph, devices), devices, Goal(split="free"))
        outcome = solve_single(problem, Settings())
        relaxation = relax(problem)
        if outcome.parts is None or relaxation.bound == np.inf:
            continue
        bound = bound_of(problem, outcome.value, gap=0.3)
        assert bound <= max(relaxation.bound, 0.7 * outcome.value)


def test_it_stops_when_told() -> None:
    """Told to stop at once, it returns the relaxation's bound."""
    graph, devices = random_workload(np.random.default_rng(1), 9)
    problem = contract_to(PartsProblem, fitted(graph, devices), devices, Goal(split="free"))
    assert bound_of(problem, 1e6, stop=True) == relax(problem).bound


@pytest.mark.parametrize("value", [2.1, 3.05])
def test_thresholds_below_which_nothing_fits_are_refuted(value: float) -> None:
    """Weights of which no device can hold any stay finite, so that the next threshold can be tried."""
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], 1.0)
    problem = contract_to(
        PartsProblem, graph, Devices((DeviceKind("gpu", 2),)), Goal(Measure.LARGEST_LOAD, "free")
    )
    assert bound_of(problem, value) == pytest.approx(2.0, rel=1e-3)
