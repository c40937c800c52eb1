"""Moving borders never makes a chain worse, keeps every rule, and finds the optimum if all nodes are near."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import WorkloadError
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.borders import BorderSearch
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.loads import value_of
from partitioner.methods.method import Settings
from partitioner.methods.rules import obeys
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import fitted, uneven_workload


@pytest.mark.parametrize("seeds", [range(80), slow(range(80, 480))])
def test_the_optimum_is_found_if_every_node_is_near_a_border(seeds: range) -> None:
    """Of up to 8 supernodes on each side of a border all stay single: value and stages are the optimum's."""
    improved = compared = 0
    for seed in seeds:
        graph, devices = uneven_workload(np.random.default_rng(seed), 9, 3)
        try:
            problem = contract_to(ChainProblem, fitted(graph, devices), devices)
        except WorkloadError:
            continue
        best, relaxation = best_chain_value(graph, devices), relax(problem)
        if best is None or not np.isfinite(relaxation.bound):
            continue
        linear = LinearSearch(problem, relaxation, Settings())
        linear.attempt(np.arange(problem.n))
        if linear.stages is None or len(linear.stages) < 2:
            continue
        first = linear.value
        BorderSearch(linear, seed).run(10**9, 3)
        assert linear.stages is not None and obeys(problem, linear.stages), seed
        assert linear.value == pytest.approx(value_of(problem, linear.stages), rel=1e-9), seed
        assert best * (1 - 1e-9) <= linear.value <= first, seed
        compared += 1
        improved += linear.value < first * (1 - 1e-9)
        if len(linear.stages) > 1:
            assert linear.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
    assert compared > len(seeds) // 5 and improved > len(seeds) // 40


def test_too_many_ideals_bring_the_border_nearer() -> None:
    """With room for few ideals the reach falls until the blocks' ideals fit, and the chain only improves."""
    graph, devices = uneven_workload(np.random.default_rng(12), 14, 4)
    problem = contract_to(ChainProblem, fitted(graph, devices), devices)
    linear = LinearSearch(problem, relax(problem), Settings(memory_budget=4_000))
    linear.attempt(np.arange(problem.n))
    assert linear.stages is not None
    first, search = linear.value, BorderSearch(linear, 0)
    search.run(10**9, 30)
    assert search.idle == 30 and linear.value <= first
