"""Pipelines of stages with equal numbers of devices are the best of these, and their bound holds for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.methods.method import ANY_DEVICES
from partitioner.planning.comparison.recommend import recommend
from tests import oracle_alternatives, random_alternatives
from tests.methods.dp.pipeline_cases import best_value
from tests.methods.slow_parameters import slow
from tests.random_pipelines import Case, random_case

EQUAL = pt.Constraints(equal_replicas=True)
FEATURES = (
    "replicas",
    "replicas kinds",
    "replicas memory",
    "replicas constraints",
    "replicas batch",
    "replicas kinds memory constraints",
    "replicas memory batch",
    "replicas levels",
    "replicas groups",
    "replicas groups memory",
)


def case_of(seed: int) -> Case:
    rng = np.random.default_rng([seed, 28])
    case = random_case(rng, FEATURES[seed % len(FEATURES)].split(), 6, 5 + seed % 2)
    return replace(case, constraints=replace(case.constraints, equal_replicas=True))


def plan_of(case: Case) -> pt.Plan | None:
    asked: dict[str, Any] = {"schedule": case.schedule, "microbatches": case.microbatches}
    try:
        return pt.solve(
            case.graph,
            case.devices,
            case.objective,
            method="pipeline",
            replicas=case.replicas,
            constraints=case.constraints,
            **asked,
        )
    except pt.InfeasibleError:
        return None


@pytest.mark.parametrize("count", [40, slow(1000)])
def test_plans_are_the_best_of_those_with_equal_numbers(count: int) -> None:
    """Over levels and groups there may be better plans than those of the form that the oracle lists."""
    found = several = 0
    for seed in range(count):
        case = case_of(seed)
        try:
            plan = plan_of(case)
        except (pt.OptionError, pt.WorkloadError):
            continue
        best = best_value(case)
        linked = bool(case.devices.levels or case.devices.groups)
        if plan is None:
            assert best is None, f"seed {seed}: infeasible, and the oracle has {best}"
            continue
        sizes = {1 + len(plan.replicas.get(name, ())) for name in plan.stages}
        assert len(sizes) == 1, f"seed {seed}: {sizes}"
        assert best is not None or linked
        if best is not None:
            proven = plan.status == "optimal"
            assert linked or plan.value == pytest.approx(best), seed
            assert not (linked and proven) or plan.value <= best * (1 + 1e-9), seed
            wide = plan.statistics.get(ANY_DEVICES, plan.bound)
            assert min(plan.bound, wide) <= best * (1 + 1e-9), seed
        assert linked or plan.status == "optimal", seed
        found, several = found + 1, several + (sizes != {1})
    assert found > count / 3 and several > count / 12


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("count", [40, slow(400)])
def test_stages_of_one_degree_and_number_of_copies_are_the_best_of_these(count: int, batch: bool) -> None:
    found = 0
    make = random_alternatives.batch_case if batch else random_alternatives.random_case
    for seed in range(count):
        case = replace(make(np.random.default_rng([seed, 28])), equal=True)
        best = oracle_alternatives.best_value(case)
        asked = {"constraints": EQUAL, **random_alternatives.options_of(case)}
        devices = random_alternatives.devices_of(case)
        try:
            plan = pt.solve(case.graph, devices, method="alternatives", **asked)
        except (pt.InfeasibleError, pt.WorkloadError):
            assert best is None, seed
            continue
        assert best is not None and plan.value == pytest.approx(best, rel=1e-9), seed
        assert plan.status == "optimal", seed
        assert len({(each.copies, each.degree) for each in plan.by_stage}) <= 1
        found += 1
    assert found > count / 3


def line() -> tuple[pt.Graph, pt.Devices]:
    """Nodes of 2, 8 and 2: on four devices the middle one takes two where stages may differ."""
    graph = pt.Graph.from_arrays({"gpu": [2.0, 8.0, 2.0]}, [(0, 1), (1, 2)])
    return graph, pt.Devices((pt.DeviceKind("gpu", 4),))


def test_equal_numbers_cost_what_the_slowest_stage_needs() -> None:
    graph, devices = line()
    free = pt.solve(graph, devices, replicas=2)
    equal = pt.solve(graph, devices, replicas=2, constraints=EQUAL)
    assert (free.value, equal.value, equal.status) == (4.0, 5.0, "optimal")
    words = "the stages of gpu0 and gpu1 have 1 device and 2 devices, their numbers must be equal"
    assert pt.evaluate(graph, devices, free, constraints=EQUAL).violations == (words,)
    assert pt.evaluate(graph, devices, equal).feasible


def test_the_makespan_and_recommendations_keep_to_equal_numbers() -> None:
    graph, devices = line()
    asked: dict[str, Any] = {"schedule": "inference", "microbatches": 6, "replicas": 3}
    plan = pt.solve(graph, devices, constraints=EQUAL, **asked)
    assert plan.objective == "makespan"
    assert len({len(plan.replicas.get(name, ())) for name in plan.stages}) == 1
    found = recommend(graph, devices, 6, equal_replicas=True, time_limit=4)
    assert found.best is not None and found.best.plan is not None
    for one in found.choices:
        plans = [] if one.plan is None else [one.plan]
        assert all(len({len(p.replicas.get(name, ())) for name in p.stages}) <= 1 for p in plans)


def test_methods_that_know_nothing_of_it_refuse() -> None:
    graph, devices = line()
    with pytest.raises(pt.OptionError, match="equal numbers of replicas mean nothing to method pipedream"):
        pt.solve(graph, devices, replicas=2, constraints=EQUAL, method="pipedream")
