"""The greedy split is the paper's on published workloads, and wherever it is found it obeys the rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partitioner import load
from partitioner.methods.latency.greedy import file_order, fill, solve_greedy
from partitioner.methods.method import Settings
from tests.methods.latency.workloads import judged, latency_problem, random_problems
from tests.methods.slow_parameters import slow

PUBLISHED = {
    "bert3": 416.204,
    "bert6": 494.135,
    "resnet50_operator": 839.536,
    "bert24": 100.219,
    "gnmt": 268.501,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_latency(published: Path, name: str) -> None:
    workload = load(published / "latency" / f"{name}_inference.json")
    found = solve_greedy(latency_problem(workload.graph, workload.devices), Settings())
    assert abs(found.value - PUBLISHED[name]) < 6e-4
    assert 0 < found.bound < found.value


@pytest.mark.parametrize(("first", "count"), [(5000, 60), slow(5060, 240)])
def test_greedy_splits_are_feasible(first: int, count: int) -> None:
    """Whatever may run where: if there is a split at all, the evaluator finds no rule broken."""
    found = 0
    for seed, graph, devices, problem in random_problems(first, count):
        layout = fill(problem, file_order(problem))
        outcome = solve_greedy(problem, Settings())
        if layout is not None:
            verdict = judged(graph, devices, problem, layout)
            assert verdict.feasible, (seed, verdict.violations)
            assert outcome.value == pytest.approx(verdict.value, rel=1e-9, abs=1e-9), seed
            found += 1
        else:
            assert outcome.parts is None and np.isinf(outcome.value), seed
    assert found > count // 2, found
