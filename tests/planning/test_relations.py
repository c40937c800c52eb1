"""Proven optima are equal, or ordered, as theory says when a workload is changed in known ways."""

from __future__ import annotations

from math import inf, isinf
from typing import Any

import pytest

from partitioner import InfeasibleError, NoPlanFound, WorkloadError, solve
from tests.relations import Case, better_cases, equal_cases, random_case

NEAR = 1e-5  # integer programs prove no closer than 1e-6
QUICK = [("throughput", "chain"), ("batch", "chain")]
SOLVED = [("throughput", "free"), ("throughput", "convex"), ("gpipe", "free"), ("latency", "convex")]


def proven(case: Case, objective: str, split: str) -> float | None:
    """The optimum in the case's own unit, infinity if there is no plan, None if nothing is proven."""
    options: dict[str, Any] = {"microbatches": 3} if objective == "batch" else {}
    try:
        plan = solve(*case.build(), objective, split=split, time_limit=30.0, **options)
    except (InfeasibleError, WorkloadError):
        return inf
    except NoPlanFound:
        return None
    return plan.value / case.scale if plan.status == "optimal" else None


def relations(seed: int, objective: str, split: str) -> int:
    """How many relations were compared, each of which must hold."""
    case, compared = random_case(seed), 0
    before = proven(case, objective, split)
    if before is None:
        return 0
    slack = 0.0 if isinf(before) else NEAR * before
    for what, changed in equal_cases(case, seed):
        after = proven(changed, objective, split)
        if after is not None:
            same = after == before if isinf(before) else abs(after - before) <= slack
            assert same, (seed, what, before, after)
            compared += 1
    for what, changed in better_cases(case, seed):
        after = proven(changed, objective, split)
        if after is not None:
            assert after <= before + slack, (seed, what, before, after)
            compared += 1
    return compared


@pytest.mark.parametrize(("objective", "split"), QUICK)
def test_chains(objective: str, split: str) -> None:
    assert sum(relations(seed, objective, split) for seed in range(1009, 1011)) > 8


@pytest.mark.parametrize(("objective", "split"), [*SOLVED[:2], SOLVED[-1]])
def test_what_solvers_prove(objective: str, split: str) -> None:
    assert relations(3, objective, split) > 4


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "split"), QUICK)
def test_chains_in_hundreds_of_relations(objective: str, split: str) -> None:
    assert sum(relations(seed, objective, split) for seed in range(2000, 2120)) > 700


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "split"), SOLVED)
def test_what_solvers_prove_often(objective: str, split: str) -> None:
    assert sum(relations(seed, objective, split) for seed in range(3000, 3008)) > 30


@pytest.mark.parametrize("method", ["dpl", "local_search", "dp", "ip"])
@pytest.mark.parametrize("scale", [2.0**-330, 2.0**-100, 1.0, 2.0**100, 2.0**320])
def test_every_method_finds_a_plan_in_the_whole_range(method: str, scale: float) -> None:
    case = random_case(7)
    case.memory, case.scale = None, scale
    split = "free" if method in ("local_search", "ip") else "chain"
    plan = solve(*case.build(), method=method, split=split, gap=0.9)
    assert plan.value > 0
