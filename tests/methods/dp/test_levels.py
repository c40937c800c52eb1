"""Over levels of devices the pipeline method finds the optimum, alone and with every other extension."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import Devices, WorkloadError
from partitioner.methods.dp.pipeline import EQUAL_LINKS, OVER_LEVELS
from partitioner.methods.method import Outcome, Settings
from tests.methods.dp.pipeline_cases import best_value, problem_of, solved
from tests.methods.slow_parameters import slow
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
    f"{ALL} batch latency",
    f"{ALL} batch",
]


def some_case(seed: int, features: str, nodes: int = 6) -> Case:
    """A random case."""
    return random_case(np.random.default_rng([seed, 12]), features.split(), nodes)


def with_links(devices: Devices, slowdown: float) -> Devices:
    """The same devices, all links outside the smallest groups of one slowdown."""
    return replace(devices, levels=tuple(replace(level, slowdown=slowdown) for level in devices.levels))


def check_against_the_oracle(case: Case) -> Outcome | None:
    """What the method finds for a case; None if nothing holds it."""
    outcome, best = solved(case, Settings(orders=1)), best_value(case)
    assert (outcome.parts is None) == (best is None)
    assert outcome.stop_reason == "optimal"
    if best is None:
        assert outcome.infeasible
        return None
    assert outcome.value == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert outcome.bound <= best * (1 + 1e-9)
    return outcome


def check_cases(features: str, seeds: range) -> tuple[int, int]:
    """How many of these random cases a pipeline can hold, and how many have nested levels."""
    feasible = nested = 0
    for seed in seeds:
        case = some_case(seed, features)
        try:
            outcome = check_against_the_oracle(case)
        except WorkloadError:
            continue
        except AssertionError as error:
            raise AssertionError(f"case {seed}") from error
        nested += len(case.devices.levels) > 1
        feasible += outcome is not None
    return feasible, nested


@pytest.mark.parametrize(
    "features", ["levels", f"{ALL} batch", *(slow(features) for features in COMBINATIONS[1:-1])]
)
def test_random_cases_against_the_oracle(features: str) -> None:
    feasible, nested = check_cases(features, range(12))
    assert feasible > 2
    assert nested > 1


def test_a_batch_is_bounded_by_what_was_merged_at_a_risk() -> None:
    """A free node that may run on CPUs only merges into one that had better not be there."""
    assert check_against_the_oracle(some_case(89, "levels batch")) is not None


@pytest.mark.slow
@pytest.mark.parametrize("features", COMBINATIONS)
def test_many_random_cases_against_the_oracle(features: str) -> None:
    feasible, nested = check_cases(features, range(12, 262))
    assert feasible > 40
    assert nested > 20


@pytest.mark.parametrize("seeds", [range(4), slow(range(4, 15))])
def test_the_optimum_lies_between_those_of_equal_links(seeds: range) -> None:
    apart = 0
    for seed in seeds:
        case = some_case(seed, "levels replicas", 8)
        inner, outer = (
            solved(replace(case, devices=with_links(case.devices, slow)))
            for slow in (1.0, max(level.slowdown for level in case.devices.levels))
        )
        between = solved(case)
        assert inner.value <= between.value * (1 + 1e-9), seed
        assert between.value <= outer.value * (1 + 1e-9), seed
        apart += inner.value < between.value
    assert apart > len(seeds) // 7


@pytest.mark.parametrize("seeds", [range(6), slow(range(6, 15))])
def test_devices_of_stages_are_those_of_groups_in_order(seeds: range) -> None:
    spanning = 0
    for seed in seeds:
        case = some_case(seed, "levels replicas", 8)
        problem, outcome = problem_of(case), solved(case)
        if outcome.parts is None:
            continue
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


def test_a_gap_says_what_its_bound_is() -> None:
    explained = 0
    for seed in range(12):
        case = some_case(seed, "levels", 9)
        assert not {EQUAL_LINKS, OVER_LEVELS} & set(solved(case).notes)
        short = solved(case, Settings(step_limit=0, orders=1))
        gap = short.stop_reason not in ("optimal", "gap") and not short.infeasible
        assert gap == bool({EQUAL_LINKS, OVER_LEVELS} & set(short.notes)), seed
        explained += gap
    assert explained > 2
