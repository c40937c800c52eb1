"""Plans with several stages on a device whose nodes run in several ways are those of an exhaustive search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    InfeasibleError,
    NoPlanFound,
    Plan,
    certify,
    compare_methods,
    evaluate,
    solve,
)
from partitioner.methods.virtual_stages import _ways_core
from partitioner.schedule import simulate
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.oracle_virtual_ways import best_virtual_ways
from tests.planning.test_alternatives import SMALL, trained
from tests.random_virtual_stages import VirtualCase, random_ways_case


def solved(case: VirtualCase) -> Plan | None:
    try:
        return solve(case.graph, case.devices, "throughput", **case.options)
    except InfeasibleError:
        return None


def agrees_with_the_oracle(seed: int, name: str) -> bool:
    """Whether nodes run by alternatives in the plan, which is as good as the best one."""
    case = random_ways_case(np.random.default_rng(seed), name)
    expected, plan = best_virtual_ways(case), solved(case)
    assert (plan is None) == (expected is None), seed
    if plan is None or expected is None:
        return False
    assert plan.status == "optimal" and math.isclose(plan.value, expected, rel_tol=1e-9, abs_tol=1e-12), seed
    if case.graph.backward.any():
        is_simulated(case, plan)
    return bool(plan.alternatives)


def is_simulated(case: VirtualCase, plan: Plan) -> None:
    """The simulation has the loads of the evaluator, and holds no more than it says."""
    timeline = simulate(case.graph, case.devices, plan)
    assert timeline.bound == pytest.approx(plan.value)
    held = {load.name: load.memory for load in plan.devices}
    reached = np.array([held[name] for name in timeline.devices])
    assert (timeline.peak_memory <= reached * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", VIRTUAL)
def test_small_plans_are_optimal(name: str) -> None:
    assert sum(agrees_with_the_oracle(seed, name) for seed in range(25)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1500, 250))
@pytest.mark.parametrize("name", VIRTUAL)
def test_many_small_plans_are_optimal(name: str, first: int) -> None:
    """2,000 cases together."""
    assert sum(agrees_with_the_oracle(seed, name) for seed in range(first, first + 250)) > 50


@pytest.mark.parametrize("name", ["interleaved_1f1b", "zbv"])
@pytest.mark.slow
def test_fewer_modes_make_no_bound_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joined modes are no worse than those that they stand for; the plan may then be no longer proven."""
    modes = _ways_core.MOST_MODES
    monkeypatch.setattr(_ways_core, "MOST_MODES", 2)
    _ways_core.list_modes.recompile()
    try:
        for seed in range(40):
            case = random_ways_case(np.random.default_rng(seed), name)
            expected = best_virtual_ways(case)
            try:
                plan = solve(case.graph, case.devices, "throughput", **case.options)
            except (InfeasibleError, NoPlanFound) as error:
                assert expected is None or isinstance(error, NoPlanFound)
                continue
            assert expected is not None and plan.bound <= expected * (1 + 1e-9) <= plan.value * (1 + 2e-9)
    finally:
        monkeypatch.setattr(_ways_core, "MOST_MODES", modes)
        _ways_core.list_modes.recompile()


def test_a_note_says_where_ways_are_not_used() -> None:
    """Where transfers overlap with processing, nodes run by their own figures."""
    options: dict[str, Any] = {"schedule": "interleaved_1f1b", "microbatches": 8}
    plan = solve(trained(), SMALL, "throughput", **options)
    assert plan.alternatives and plan.method == "virtual_stages"
    assert not any("uses no alternatives" in note for note in plan.notes)
    wide = Devices((DeviceKind("accelerator", 2),), "overlapped")
    plan = solve(trained(), wide, "throughput", **options)
    assert not plan.alternatives and any("uses no alternatives" in note for note in plan.notes)


def test_ways_are_compared_and_evaluated() -> None:
    options: dict[str, Any] = {"schedule": "zb_h1", "microbatches": 8}
    found = compare_methods(trained(), SMALL, **options)
    (plan,) = (one.plan for one in found.compared if one.plan is not None)
    assert plan.alternatives and not found.contradictions
    again = evaluate(trained(), SMALL, plan)
    assert again.feasible and again.value == pytest.approx(plan.value)
    assert certify(trained(), SMALL, plan, **options).bound == pytest.approx(plan.value)


def test_a_certificate_is_for_several_stages_on_a_device() -> None:
    options: dict[str, Any] = {"schedule": "zbv", "microbatches": 8}
    plan = solve(trained(), SMALL, "throughput", **options)
    assert plan.alternatives and plan.stage_of is not None
    assert certify(trained(), SMALL, plan, **options).bound == pytest.approx(plan.value)
