"""A layout's latency is the evaluator's, and it obeys where the evaluator finds no rule broken."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.latency.layout import latency, obeys
from partitioner.methods.latency.path import longest_path
from partitioner.methods.places import device_kinds
from tests.methods.latency.workloads import judged, random_layout, random_problems
from tests.methods.slow_parameters import slow


@pytest.mark.parametrize(("first", "count"), [(0, 120), slow(120, 780)])
def test_latency_and_rules_agree_with_the_evaluator(first: int, count: int) -> None:
    """With one to three subgraphs, and with layouts that break any rule."""
    seen: dict[str, int] = {"feasible": 0, "circles": 0, "broken": 0}
    for seed, graph, devices, problem in random_problems(first, count):
        layout = random_layout(problem, np.random.default_rng(seed))
        found, value = judged(graph, devices, problem, layout), latency(problem, layout)
        kind = device_kinds(problem)[layout.place]
        if problem.allowed[kind, np.arange(problem.n)].all():
            assert value == pytest.approx(found.value, rel=1e-9, abs=1e-9), seed
        keeps = obeys(problem, layout)
        assert (keeps and np.isfinite(value)) == found.feasible, (seed, found.violations)
        if found.feasible:
            assert longest_path(problem) <= value * (1 + 1e-9), seed
        seen["feasible"] += found.feasible
        seen["circles"] += np.isinf(value)
        seen["broken"] += not keeps
    assert min(seen.values()) > count // 9, seen
