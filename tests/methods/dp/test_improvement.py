"""Where the ideals do not fit, improved chains are true, and bounds stay below the optimum."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, WorkloadError, solve
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp import gpipe as passes
from partitioner.methods.dp import pipeline as pipelines
from partitioner.methods.dp.improvement import BorderSearch
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.loads import value_of
from partitioner.methods.method import Settings
from partitioner.methods.rules import obeys
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to
from tests.methods.dp.test_gpipe import compared
from tests.methods.dp.test_pipeline import attempt
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


EXTENDED = ("replicas", "memory", "replicas batch", "kinds replicas")


def wide_branching(branches: int, length: int) -> Graph:
    """Branches between a source and a sink, with random times and tensors."""
    rng, edges = np.random.default_rng(0), []
    n = branches * length + 2
    for branch in range(branches):
        nodes = [0, *range(1 + branch * length, 1 + (branch + 1) * length), n - 1]
        edges += list(pairwise(nodes))
    times = {"accelerator": rng.uniform(1.0, 10.0, n), "cpu": np.full(n, 1e3)}
    return Graph.from_arrays(times, edges, rng.uniform(0.1, 3.0, len(edges)))


@pytest.fixture
def _without_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (passes, pipelines):
        monkeypatch.setattr(module, "lattice_within", lambda *_, **__: None)


@pytest.mark.usefixtures("_without_lattice")
@pytest.mark.parametrize("seeds", [range(12), slow(range(12, 212))])
def test_chains_of_two_passes(seeds: range) -> None:
    """Values, bounds and verdicts are compared with the oracle; most chains of small graphs are optimal."""
    found = compared(seeds, 7, 3, orders=1)
    optimal = sum(plan.value <= best * (1 + 1e-9) for plan, best in found)
    assert len(found) > len(seeds) // 3 and optimal > 0.9 * len(found)


@pytest.mark.usefixtures("_without_lattice")
@pytest.mark.parametrize(
    ("features", "seeds"),
    [
        ("replicas", range(30)),
        *(
            slow(features, range(30, 110))
            for features in ("replicas", "memory", "replicas batch", "kinds replicas")
        ),
    ],
)
def test_pipelines(features: str, seeds: range) -> None:
    """Never below the oracle, the bound never above it, and most pipelines of small graphs are optimal."""
    optimal = feasible = 0
    for seed in seeds:
        found = attempt(seed, features, Settings(orders=1))
        if found is None or found[1] is None or found[0].parts is None:
            continue
        outcome, best = found
        assert best is not None and outcome.value >= best * (1 - 1e-9), seed
        assert outcome.bound <= best * (1 + 1e-9), seed
        feasible += 1
        optimal += outcome.value <= best * (1 + 1e-9)
    assert feasible > len(seeds) // 3 and optimal > 0.8 * feasible


@pytest.mark.parametrize(
    "options", [{}, {"replicas": 2}, {"objective": "gpipe"}, {"schedule": "1f1b", "microbatches": 4}]
)
@pytest.mark.slow
def test_the_time_limit_is_used_and_kept(options: dict[str, Any]) -> None:
    """On a graph whose ideals fit no memory the search goes on until the limit, and no plan gets worse."""
    graph, devices = wide_branching(8, 12), Devices.accelerated(4)
    solve(graph, devices, time_limit=1.0, **options)  # compiles
    values = []
    for limit in (1.0, 4.0):
        began = time.perf_counter()
        plan = solve(graph, devices, time_limit=limit, **options)
        seconds = time.perf_counter() - began
        assert limit - 0.3 < seconds < limit + 1.0 or plan.status == "optimal"
        values.append(plan.value)
    assert values[1] <= values[0] * 1.05
