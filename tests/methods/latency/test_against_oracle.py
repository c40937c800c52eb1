"""The integer program and all placements agree on the least latency, and no bound exceeds it."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.latency.integer_program import formulate
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.serial_bound import bound_of
from partitioner.methods.method import Settings
from partitioner.methods.solvers.backends.backend import SolverLimits
from partitioner.methods.solvers.backends.mathopt import solve_scip
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.methods.slow_parameters import slow
from tests.oracle_latency import best_latency, latency
from tests.random_workloads import random_workload

LIMITS = SolverLimits(30.0)


def by_program(problem: SampleProblem, cutoff: float = np.inf) -> tuple[SubgraphLayout | None, float]:
    """The layout that SCIP finds, and its bound."""
    form = formulate(problem, cutoff)
    answer = solve_scip(form.program, LIMITS, lambda values, bound: None)
    assert answer.stop in ("optimal", "infeasible")
    found = None if answer.values is None else form.solution(answer.values)
    return found, answer.bound * form.unit


def check(graph: Graph, devices: Devices, subgraphs: int, where: str) -> bool:
    """Hold the program and the bound to the exhaustive optimum; is there one?"""
    best = best_latency(graph, devices, subgraphs)
    problem = contract_to(
        SampleProblem, graph, devices, Goal(Measure.ONE_SAMPLE, "convex", subgraphs=subgraphs)
    )
    assert bound_of(problem, Settings()) <= best * (1 + 1e-9), where
    layout, bound = by_program(problem)
    value = np.inf if layout is None else latency(graph, devices, problem, layout)
    assert value == pytest.approx(best, rel=1e-5, abs=1e-9), where
    assert bound <= best * (1 + 1e-5) + 1e-9, where
    if 0 < best < np.inf:
        assert by_program(problem, best * (1 + 1e-4))[0] is not None, where
        assert by_program(problem, best * (1 - 1e-3))[0] is None, where
    return bool(np.isfinite(best))


@pytest.mark.parametrize("seeds", [range(8), slow(range(8, 60))])
def test_small_workloads(seeds: range) -> None:
    feasible = 0
    for seed in seeds:
        graph, devices = random_workload(np.random.default_rng(seed), most_nodes=4)
        feasible += check(graph, devices, 1 + seed % 2, f"seed {seed}")
    assert feasible > len(seeds) * 2 / 3


@pytest.mark.slow
def test_more_workloads() -> None:
    for seed in range(1_000, 1_260):
        graph, devices = random_workload(np.random.default_rng(seed), most_nodes=5 + seed % 2)
        check(graph, devices, 1 + seed // 2 % 2, f"seed {seed}")
