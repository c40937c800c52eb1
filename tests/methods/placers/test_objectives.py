"""Placers serve every objective: the evaluator agrees, no bound is exceeded, and a wrong split is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import (
    Devices,
    Graph,
    InfeasibleError,
    Level,
    NoPlanFound,
    OptionError,
    Plan,
    evaluate,
    solve,
)
from partitioner.methods.placers.plan_value import fewest_subgraphs
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.methods.placers.cases import cases

LINE = Graph.from_arrays({"accelerator": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], cost=0.0)
TO_AND_FRO = Graph.from_arrays(
    {"accelerator": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], cost=0.0, color=[7, None, 7, None], size=1.0
)


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
def test_a_placement_is_valued_and_a_search_makes_it_no_worse(objective: str) -> None:
    tried = 0
    for seed, graph, devices, _ in cases(700, 60, 10):
        if len(graph) < 4:
            continue
        try:
            plan = solve(graph, devices, objective, method="heft")
        except (NoPlanFound, InfeasibleError):
            continue
        better = solve(graph, devices, objective, method="heft", refine=True, time_limit=0.1)
        assert plan.split == "free"
        assert plan.bound <= better.value * (1 + 1e-9), seed
        assert better.value <= plan.value * (1 + 1e-9), seed
        tried += 1
        if tried == 12:
            return
    raise AssertionError("too few cases")


@pytest.mark.parametrize(("first", "count"), [(900, 400), pytest.param(2000, 2000, marks=pytest.mark.slow)])
def test_for_latency_the_fewest_subgraphs_are_those_of_the_evaluator(first: int, count: int) -> None:
    several = 0
    for seed, graph, devices, _ in cases(first, count, 12):
        try:
            plan = solve(graph, devices, "latency", method="heft", subgraphs_per_accelerator=12)
        except (NoPlanFound, InfeasibleError, OptionError):
            continue
        usual = evaluate(graph, devices, plan.placement, "latency", subgraphs_per_accelerator=12)
        assert plan.value == pytest.approx(usual.value), seed
        several += max((plan.subgraphs or {}).values()) > 0
    assert several > count / 130


def test_a_placement_of_too_many_subgraphs_is_no_plan() -> None:
    devices = Devices.accelerated(2, memory=2.0)
    problem = contract_to(SampleProblem, TO_AND_FRO, devices, Goal(Measure.ONE_SAMPLE, "convex"))
    assert fewest_subgraphs(problem, np.array([0, 1, 0, 1])).tolist() == [0, 0, 1, 1]
    words = r"needs 2 subgraphs on accelerator\d, and .*--subgraphs-per-accelerator.* allows 1"
    with pytest.raises(NoPlanFound, match=words):
        solve(TO_AND_FRO, devices, "latency", method="heft")
    assert solve(TO_AND_FRO, devices, "latency", method="heft", subgraphs_per_accelerator=2).value == 4.0


def test_a_search_goes_on_without_a_placement_that_is_no_plan() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], cost=[0.0, 9.0, 0.0])
    plan = solve(graph, Devices.accelerated(2, memory=4.0), "latency", method="heft", refine=True)
    assert plan.value == 4.0


def test_the_split_follows_from_method_and_objective() -> None:
    wanted = {"throughput": "free", "gpipe": "free", "makespan": "free", "latency": "convex"}
    for objective, split in wanted.items():
        assert found(objective).split == split
        assert found(objective, split=split).split == split
        wrong = {"free": "convex", "convex": "free"}[split]
        with pytest.raises(OptionError, match=f"split '{wrong}' is not available with method heft"):
            found(objective, split=wrong)
        with pytest.raises(OptionError, match="split 'chain' is not available"):
            found(objective, split="chain")


def test_levels_are_for_makespans_alone() -> None:
    devices = replace(Devices.accelerated(2), levels=(Level("server", {"accelerator": 1}, 4.0),))
    assert solve(LINE, devices, "makespan", method="heft").value == 4.0
    with pytest.raises(OptionError, match="levels of devices mean nothing to method heft"):
        solve(LINE, devices, "throughput", method="heft")


def found(objective: str, **options: str) -> Plan:
    """A plan for a line."""
    return solve(LINE, Devices.accelerated(2), objective, method="heft", **options)  # type: ignore[arg-type]
