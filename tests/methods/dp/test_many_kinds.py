"""The search over many kinds finds the optimum by exhaustion, and its bounds hold where it is cut short."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from partitioner import WorkloadError
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp import many_kinds
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.many_kinds import ManyKindsSearch
from partitioner.methods.loads import value_of
from partitioner.methods.method import Settings
from partitioner.methods.rules import obeys
from partitioner.problem.contract import contract
from partitioner.problem.variants import ChainProblem
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import fitted, uneven_workload

SLICES = (40, 600, 1200, 1800)
NOTHING = Settings()


def random_search(
    seed: int,
    most_nodes: int = 9,
    most_devices: int = 4,
    settings: Settings = NOTHING,
    free: bool = False,
) -> tuple[ManyKindsSearch, float | None] | None:
    """The search of a random workload before it ran, and the oracle's value; None if a node fits nowhere.

    With `free` transfers cost nothing.
    """
    graph, devices = uneven_workload(np.random.default_rng(seed), most_nodes, most_devices)
    if free:
        graph = replace(graph, cost=np.zeros_like(graph.cost))
    try:
        problem = contract(fitted(graph, devices), devices)
    except WorkloadError:
        return None
    assert isinstance(problem, ChainProblem)
    relaxation = relax(problem)
    if np.isinf(relaxation.bound):
        return None
    linear = LinearSearch(problem, relaxation, settings)
    return ManyKindsSearch(linear, relaxation, settings), best_chain_value(graph, devices)


@pytest.mark.parametrize("seeds", [range(40), *(slow(range(*pair)) for pair in pairwise(SLICES))])
def test_equals_exhaustive_search(seeds: range) -> None:
    """From nothing, with transfers, memory and every model of communication, the value is the oracle's."""
    feasible = 0
    for seed in seeds:
        found = random_search(seed)
        if found is None:
            continue
        many, best = found
        many.run()
        assert (many.linear.stages is None) == (best is None), seed
        if many.linear.stages is None or best is None:
            assert np.isinf(many.linear.bound), seed
            continue
        feasible += 1
        assert many.linear.closed, seed
        assert many.linear.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        assert obeys(many.linear.problem, many.linear.stages), seed
    assert len(seeds) // 2 < feasible


@pytest.mark.parametrize("seeds", [range(5000, 5025), slow(range(5025, 5600))])
def test_each_direction_alone_decides_about_thresholds(seeds: range) -> None:
    """At the optimum a chain is found, just below it none, forwards and backwards."""
    for seed in seeds:
        found = random_search(seed)
        if found is None or found[1] is None or found[1] <= 0:
            continue
        many, best = found[0], found[1]
        for way in many.ways:
            at, below = way.find(best * (1 + 1e-9), 10**6), way.find(best * (1 - 1e-9), 10**6)
            assert at.stages is not None and value_of(way.problem, at.stages) <= best * (1 + 2e-9), seed
            assert below.stages is None and below.complete, seed


@pytest.mark.parametrize("seeds", [range(6000, 6060), slow(range(6060, 7000))])
def test_the_covering_bound_leaves_out_no_chain_within_a_threshold(seeds: range) -> None:
    """It is not above the optimum; with its weights each direction finds the optimum and refutes less."""
    raised = weighed = 0
    for seed in seeds:
        found = random_search(seed, free=True)
        if found is None or found[1] is None or found[1] <= 0:
            continue
        many, best = found[0], found[1]
        many.value = best * (1 + seed % 3 / 10)
        before = many.bound
        many.cover()
        raised += many.bound > before
        assert many.bound <= best * (1 + 1e-9), seed
        for way in many.ways:
            at, below = way.find(best * (1 + 1e-9), 10**6), way.find(best * (1 - 1e-9), 10**6)
            assert at.stages is not None and value_of(way.problem, at.stages) <= best * (1 + 2e-9), seed
            assert below.stages is None and below.complete, seed
            weighed += way.cover is not None and way.cover.held(best * (1 - 1e-9)) is not None
    assert raised > len(seeds) / 40
    assert weighed > len(seeds) / 4


@pytest.mark.parametrize("seeds", [range(8000, 8025), slow(range(8025, 8600))])
def test_narrow_levels_keep_bounds_true(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one or three chains a level and few in all: never below the oracle, the bound never above."""
    little = replace(many_kinds.EFFORT, first_width=1, wider=3, most_chains=60)
    monkeypatch.setattr(many_kinds, "EFFORT", little)
    open_cases = 0
    for seed in seeds:
        found = random_search(seed)
        if found is None:
            continue
        many, best = found
        many.run()
        if best is None:
            assert many.linear.stages is None, seed
            continue
        assert many.linear.bound <= best * (1 + 1e-9) + 1e-12, seed
        assert many.linear.value >= best * (1 - 1e-9), seed
        open_cases += not many.linear.closed
    assert open_cases > len(seeds) // 20


@pytest.mark.parametrize("seeds", [range(9500, 9515), slow(range(9515, 9800))])
def test_a_tiny_memory_budget_keeps_bounds_true(seeds: range) -> None:
    """Where a level does not fit the memory, the best chains are kept and nothing is claimed."""
    for seed in seeds:
        found = random_search(seed, settings=replace(NOTHING, memory_budget=3000))
        if found is None or found[1] is None:
            continue
        many, best = found[0], found[1]
        many.run()
        assert many.linear.bound <= best * (1 + 1e-9) + 1e-12, seed
        assert many.linear.value >= best * (1 - 1e-9), seed
