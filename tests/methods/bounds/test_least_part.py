"""The bound is the largest of the least loads of parts with some supernode, and no placement is below it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partitioner import Devices, Graph, InfeasibleError, solve
from partitioner.methods.bounds import least_part as module
from partitioner.methods.bounds.least_part import least_part
from partitioner.methods.method import Settings
from partitioner.problem.problem import Problem
from tests.methods.slow_parameters import slow
from tests.oracle import best_values
from tests.random_problems import cases


def least_load(problem: Problem, v: int) -> float:
    """The least load of all sets of supernodes with `v`, by adding up each of them on each kind."""
    pins = [set(problem.nets.pins.row(net).tolist()) for net in range(len(problem.nets.cost))]
    best = np.inf
    for chosen in product((False, True), repeat=problem.n):
        part = {u for u, inside in enumerate(chosen) if inside}
        if v in part:
            cut = sum(
                c
                for pin, c in zip(pins, problem.nets.cost.tolist(), strict=True)
                if part & pin and pin - part
            )
            for k in np.flatnonzero(problem.count).tolist():
                if problem.allowed[k, [*part]].all():
                    time = problem.time[k][:, [*part]].sum()
                    best = min(best, float(time + cut * problem.transfer_factor[k]))
    return best


@pytest.mark.parametrize(("first", "count"), [(0, 150), slow(1000, 1500)])
def test_the_largest_of_the_least_loads(first: int, count: int) -> None:
    """Exactly, and never above the best of all placements, whatever the split is for."""
    seen = 0
    for case in cases(first, count):
        problem = case.problem("free")
        bound = least_part(problem, Settings(), 0.0)
        if problem.measure.passes == 2 or problem.communication != "sequential":
            assert bound == 0.0, case.seed
            continue
        expected = max(least_load(problem.relaxed, v) for v in range(problem.n))
        assert np.isinf(expected) or bound == pytest.approx(expected, rel=1e-9, abs=1e-12), case.seed
        best = best_values(case.graph, case.devices)["free"]
        assert best is None or bound <= best * (1 + 1e-9), case.seed
        seen += best is not None
    assert seen > count / 10


def test_a_bound_that_is_known_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so it is where the graph is too large, the time is over, or no cut is better."""
    case = next(case for case in cases(0, 50) if case.problem("free").communication == "sequential")
    problem = case.problem("free")
    assert least_part(problem, Settings(), 1e9) == 1e9
    monkeypatch.setattr(module, "MOST_PINS", -1)
    assert least_part(problem, Settings(), 0.5) == 0.5


def test_a_heavy_chain_of_operators_is_proven_without_a_solver() -> None:
    """Two operators that exchange a large tensor belong on one device: no sum of times shows that."""
    graph = Graph.from_arrays(
        {"accelerator": [5.0, 5.0, 1.0, 1.0]}, [(0, 1), (1, 2), (2, 3)], [9.0, 0.5, 0.5]
    )
    plan = solve(graph, Devices.accelerated(4), method="ip", split="free")
    assert (plan.value, plan.status, plan.backend) == (10.5, "optimal", "numba")


def test_a_supernode_that_may_run_nowhere_leaves_no_plan() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], size=[3.0, 3.0])
    with pytest.raises(InfeasibleError):
        solve(graph, Devices.accelerated(1, memory=4.0), method="ip", split="free")
