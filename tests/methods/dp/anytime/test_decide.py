"""What the search decides about a threshold is true, in both directions, whatever the order of candidates."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.anytime.decide import Decider, Effort
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
