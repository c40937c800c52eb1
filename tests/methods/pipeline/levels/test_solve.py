"""Over levels of devices the pipeline method finds the optimum, alone and with every other extension."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import Devices, WorkloadError
from partitioner.methods.method import Settings
from tests.methods.pipeline.cases import problem_of, solved
from tests.methods.pipeline.test_solve import best_value
from tests.random_pipelines import Case, random_case

ALL = "levels kinds replicas memory constraints"
COMBINATIONS = [
    "levels",
    "levels kinds",
    "levels replicas",
    "levels memory",
    "levels constraints",
    "levels batch",
    "levels replicas memory",
    "levels replicas constraints",
    ALL,
    f"{ALL} batch",
]


def some_case(seed: int, features: str, nodes: int = 6) -> Case:
    """A random case."""
    return random_case(np.random.default_rng([seed, 12]), features.split(), nodes)


def with_links(devices: Devices, slowdown: float) -> Devices:
    """The same devices, all links outside the smallest groups of one slowdown."""
    return replace(devices, levels=tuple(replace(level, slowdown=slowdown) for level in devices.levels))


@pytest.mark.parametrize("features", COMBINATIONS)
def test_random_cases_against_the_oracle(features: str) -> None:
    feasible = nested = 0
    for seed in range(12):
        case = some_case(seed, features)
        try:
            outcome, best = solved(case, Settings(orders=1)), best_value(case)
        except WorkloadError:
            continue
        nested += len(case.devices.levels) > 1
        assert (outcome.parts is None) == (best is None), seed
        assert outcome.stop_reason == "optimal", seed
        if best is None:
            assert outcome.infeasible, seed
            continue
        feasible += 1
        assert outcome.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
    assert feasible > 2
    assert nested > 1


def test_the_optimum_lies_between_those_of_equal_links() -> None:
    apart = 0
    for seed in range(15):
        case = some_case(seed, "levels replicas", 8)
        inner, outer = (
            solved(replace(case, devices=with_links(case.devices, slow)))
            for slow in (1.0, max(level.slowdown for level in case.devices.levels))
        )
        between = solved(case)
        assert inner.value <= between.value * (1 + 1e-9), seed
        assert between.value <= outer.value * (1 + 1e-9), seed
        apart += inner.value < between.value
    assert apart > 2


def test_devices_of_stages_are_those_of_groups_in_order() -> None:
    spanning = 0
    for seed in range(15):
        case = some_case(seed, "levels replicas", 8)
        problem, outcome = problem_of(case), solved(case)
        if outcome.parts is None:
            continue
        assert problem.pipeline is not None
        size, last = problem.pipeline.group[0], 0
        for part in outcome.parts:
            assert len(set(part.devices)) == part.replicas
            groups = sorted({index // int(size[part.kind]) for index in part.devices})
            assert groups[0] >= last
            if len(groups) > 1:
                spanning += 1
                assert part.replicas == len(groups) * size[part.kind]
                assert groups == list(range(groups[0], groups[-1] + 1))
            last = groups[-1]
    assert spanning > 0


def test_a_search_cut_short_keeps_a_valid_bound() -> None:
    case = some_case(4, "levels", 9)
    whole = solved(case)
    short = solved(case, Settings(step_limit=0, orders=1))
    assert short.bound <= whole.value * (1 + 1e-9)
    assert short.value >= whole.value * (1 - 1e-9)
