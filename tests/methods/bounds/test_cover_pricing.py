"""The oracles find the heaviest set that a device can hold: compared with all sets of small problems."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

from partitioner import Devices
from partitioner.methods.bounds import cover_pricing
from partitioner.methods.bounds.cover_pricing import (
    Column,
    FractionOracle,
    Oracle,
    PricingEffort,
    SetOracle,
)
from partitioner.methods.bounds.cover_steps import CoverStates, enumerate_ways, steps_of
from partitioner.problem.goal import Goal
from partitioner.problem.variants import PartsProblem
from tests.contracted import contract_to
from tests.methods.slow_parameters import slow
from tests.random_workloads import random_workload


def problems(seed: int, count: int) -> list[PartsProblem]:
    rng = np.random.default_rng(seed)
    return [contract_to(PartsProblem, *random_workload(rng, 9), Goal(split="free")) for _ in range(count)]


def states_of(problem: PartsProblem, threshold: float) -> CoverStates:
    """The states of sets within a threshold, enumerated for a larger one."""
    steps = steps_of(problem, problem.nets.cost, False)
    assert steps is not None
    ways = enumerate_ways(steps, problem.work()[0], 1.5 * threshold, 10**6)
    assert ways is not None
    return ways.within(threshold)


def heaviest(oracle: Oracle, weight: np.ndarray) -> Column:
    """The oracle's heaviest column; the bound of its quick answer is no less than that weighs."""
    quick = oracle.quick(weight)
    exact = oracle.exact(weight, quick)
    assert quick.share @ weight <= exact.weight * (1 + 1e-9) <= quick.weight * (1 + 2e-9)
    return exact


def set_load(problem: PartsProblem, kind: int, chosen: np.ndarray) -> float:
    """Processing of the chosen supernodes plus the cost of every net that is partly chosen."""
    if not problem.allowed[kind, chosen].all():
        return np.inf
    load = float(problem.time[kind, :, chosen].sum())
    for e, cost in enumerate(problem.nets.cost.tolist()):
        inside = chosen[problem.nets.pins.row(e)]
        load += cost * (inside.any() and not inside.all())
    return load


@pytest.mark.parametrize("seed", [0, slow(1), slow(2), slow(3)])
def test_the_best_set_is_the_best_of_all_sets(seed: int) -> None:
    """Loads count transfers, and no set within the threshold weighs more."""
    rng = np.random.default_rng(seed)
    compared = 0
    for problem in problems(seed, 60):
        weight = rng.choice([0.0, 0.5, 1.0, 2.0, 3.1], problem.n)
        work = problem.work()[0]
        threshold = float(rng.uniform(0.1, 1.0) * np.where(np.isfinite(work), work, 0.0).sum())
        states = states_of(problem, threshold)
        sets = [np.array(bits, dtype=bool) for bits in product((False, True), repeat=problem.n)]
        held = [weight[s].sum() for s in sets if set_load(problem, 0, s) <= threshold]
        oracle = SetOracle(states, threshold)
        assert set_load(problem, 0, oracle.quick(weight).share > 0.5) <= threshold * (1 + 1e-9)
        column = heaviest(oracle, weight)
        assert column.weight == pytest.approx(max(held), abs=1e-9)
        assert column.share @ weight == pytest.approx(column.weight)
        compared += column.weight > 0
    assert compared > 20


def test_with_few_labels_a_set_and_a_bound_enclose_the_best_set() -> None:
    """Where labels may not be many, the set found keeps the threshold and the weight bounds the best one."""
    rng = np.random.default_rng(5)
    lighter = 0
    for problem in problems(9, 200):
        weight = rng.exponential(1.0, problem.n)
        work = problem.work()[0]
        threshold = 0.5 * float(np.where(np.isfinite(work), work, 0.0).sum())
        states = states_of(problem, threshold)
        exact, rough = heaviest(SetOracle(states, threshold), weight), SetOracle(states, threshold)
        rough.room = 1
        with patch.object(cover_pricing, "EFFORT", PricingEffort(fewest=1, most=1, beam=1)):
            column = rough.exact(weight, rough.quick(weight))
        assert column.weight >= exact.weight * (1 - 1e-9)
        assert set_load(problem, 0, column.share > 0.5) <= threshold * (1 + 1e-9)
        assert column.share @ weight <= exact.weight * (1 + 1e-9)
        lighter += int(column.share @ weight < exact.weight * (1 - 1e-9))
    assert lighter > 5


def test_too_many_states_are_refused() -> None:
    """The limit on states is kept."""
    problem = problems(1, 1)[0]
    steps = steps_of(problem, problem.nets.cost, False)
    assert steps is not None
    assert enumerate_ways(steps, problem.work()[0], 1e9, 0) is None


def test_fractions_fill_the_device_with_the_best_ratio_first() -> None:
    """What takes no time is free; the last supernode is taken in part; what may not run is not."""
    oracle = FractionOracle(np.array([0.0, 2.0, 4.0, np.inf]), 4.0)
    column = heaviest(oracle, np.array([1.0, 4.0, 4.0, 9.0]))
    assert column.share.tolist() == [1.0, 1.0, 0.5, 0.0]
    assert column.weight == 7.0


def test_the_devices_of_a_problem_without_nets() -> None:
    """Without transfers the best set is a knapsack."""
    from partitioner import Graph

    graph = Graph.from_arrays({"accelerator": [3.0, 4.0, 5.0]})
    problem = contract_to(PartsProblem, graph, Devices.accelerated(2), Goal(split="free"))
    states = states_of(problem, 8.0)
    assert heaviest(SetOracle(states, 8.0), problem.work()[0]).weight == 8.0
