"""Method dp with many kinds of devices: plans, proofs and bounds are true, whichever search ends first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_outside import FOLDER
from outside_bench.cases import worker_cases
from outside_bench.runs import run

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Plan,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.methods.dp import exact
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import uneven_workload

pytestmark = pytest.mark.slow

WORKERS = Path(FOLDER, "alwabp")


def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let method dp search level by level for any number of kinds and ideals."""
    monkeypatch.setattr(exact, "EFFORT", replace(exact.EFFORT, many_kinds=1, small_table=0))


def solved(seed: int, **options: Any) -> tuple[Plan | None, float | None]:
    graph, devices = uneven_workload(np.random.default_rng(seed), 9, 4)
    best = best_chain_value(graph, devices)
    try:
        plan = solve(graph, devices, method="dp", **options)
    except (WorkloadError, InfeasibleError):
        return None, best
    evaluation = evaluate(graph, devices, plan.placement)
    assert evaluation.feasible and evaluation.value == plan.value
    return plan, best


@pytest.mark.parametrize("seeds", [range(40_000, 40_025), slow(range(40_025, 40_450))])
def test_equals_exhaustive_search(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch)
    for seed in seeds:
        plan, best = solved(seed)
        assert (plan is None) == (best is None), seed
        if plan is not None and best is not None:
            assert plan.status == "optimal", seed
            assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed


@pytest.mark.parametrize("seeds", [range(41_000, 41_025), slow(range(41_025, 41_450))])
def test_a_tiny_memory_budget_keeps_bounds_true(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither levels nor ideals fit: never below the oracle, the bound never above."""
    forced(monkeypatch)
    for seed in seeds:
        try:
            plan, best = solved(seed, memory_budget=2500, deterministic=True)
        except NoPlanFound:
            continue
        if plan is not None and best is not None:
            assert plan.bound <= best * (1 + 1e-9) <= plan.value * (1 + 2e-9) + 1e-12, seed


def test_a_kind_for_every_device_needs_no_table_of_all_sets() -> None:
    """Forty kinds of one device: there are 2**40 sets of devices."""
    rng = np.random.default_rng(3)
    names = [f"kind {k}" for k in range(40)]
    times = {name: rng.integers(1, 9, 40).astype(float) for name in names}
    graph = Graph.from_arrays(times, [(v, v + 2) for v in range(38)])
    devices = Devices(tuple(DeviceKind(name, 1) for name in names))
    plan = solve(graph, devices, time_limit=1, memory_budget=2**28)
    assert plan.value <= 3


@pytest.mark.parametrize(
    "name", ["roszieg 41", "heskia 64", *(slow(f"heskia {number}") for number in (1, 35, 51, 80))]
)
def test_instances_of_worker_assignment_are_proven(name: str) -> None:
    """Published optima of ALWABP, where the network of tasks has up to 300,000 ideals and 7 workers."""
    if not WORKERS.is_dir():
        pytest.skip(f"the outside benchmarks are not here: no folder {WORKERS}")
    (case,) = [case for case in worker_cases(FOLDER) if case.name == name]
    found = run(case, limit=60)
    assert found.value == found.bound == case.high
