"""DPL is feasible, never below the optimum, its bound never above; long orders go through blocks."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import InfeasibleError, NoPlanFound, WorkloadError, solve
from partitioner.methods.dp import forms
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import uneven_workload


def compare_with_oracle(seeds: range) -> tuple[int, int]:
    """Check DPL plans against the oracle; return how many there were and how many were optimal."""
    plans = optimal = 0
    for seed in seeds:
        graph, devices = uneven_workload(np.random.default_rng(seed), 9, 3)
        best = best_chain_value(graph, devices)
        try:
            plan = solve(graph, devices, method="dpl", seed=seed)
        except NoPlanFound:
            continue
        except (WorkloadError, InfeasibleError):
            assert best is None, seed
            continue
        assert best is not None, seed
        assert plan.bound <= best * (1 + 1e-9) + 1e-12, seed
        assert best <= plan.value * (1 + 1e-9) + 1e-12, seed
        plans += 1
        optimal += plan.value <= best * (1 + 1e-9) + 1e-12
    return plans, optimal


@pytest.mark.parametrize("seeds", [range(50), slow(range(50, 500))])
def test_between_bound_and_optimum(seeds: range) -> None:
    """Twelve orders and their refinements reach the optimum on most small graphs."""
    plans, optimal = compare_with_oracle(seeds)
    assert plans > 0.6 * len(seeds)
    assert optimal > 0.9 * plans


@pytest.mark.parametrize("seeds", [range(1000, 1040), slow(range(1040, 1300))])
def test_blocks_keep_the_promise(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """With at most four blocks an order, plans stay feasible and bounds true."""
    monkeypatch.setattr(forms, "MOST_BLOCKS", 4)
    plans, optimal = compare_with_oracle(seeds)
    assert plans > 0.5 * len(seeds)
    assert optimal > 0.5 * plans


def test_same_seed_same_plan() -> None:
    """Everything random hangs on the seed."""
    graph, devices = uneven_workload(np.random.default_rng(3), 10, 3)
    first, second = (solve(graph, devices, method="dpl", seed=7) for _ in range(2))
    assert first.placement == second.placement
