"""The published workloads for latency: no worse than what the paper's integer program found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partitioner import load
from partitioner.methods.latency.sequence.method import solve_sequence
from partitioner.methods.method import Settings
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.methods.latency.cases import judged
from tests.methods.slow_parameters import slow

NAMES = ["bert3", "bert24", slow("bert6"), slow("gnmt"), slow("resnet50_operator")]


@pytest.mark.parametrize("name", NAMES)
def test_no_worse_than_the_paper(published: Path, reference: Callable[[str], Any], name: str) -> None:
    """The latency is at most the paper's, up to its two digits, and the evaluator's."""
    workload = load(published / "latency" / f"{name}_inference.json")
    problem = contract_to(SampleProblem, workload.graph, workload.devices, Goal(Measure.ONE_SAMPLE, "convex"))
    outcome = solve_sequence(problem, Settings())
    verdict = judged(workload.graph, workload.devices, problem, outcome)
    rows = reference("table4")["rows"]
    assert not verdict.violations
    assert outcome.value == pytest.approx(verdict.value)
    assert outcome.value <= next(row["ip"] for row in rows if row["workload"] == f"{name}_inference") + 0.05
