"""A stage that can take one more supernode is left out only where no optimum is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from partitioner import Devices, Graph, InfeasibleError, Plan, solve
from partitioner.methods.dp import gpipe_tables as tables
from partitioner.methods.dp.gpipe_tables import growth_by_pass
from partitioner.methods.dp.stages import read_of_node
from partitioner.problem.arrays import Floats
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to
from tests.methods.dp.test_gpipe import workload
from tests.methods.slow_parameters import slow

BY_PASS = Goal(Measure.LARGEST_LOAD_BY_PASS)


def never(problem: Problem) -> Floats:
    """Return growth that leaves no stage out."""
    return np.full((2, *problem.allowed.shape), np.inf)


def plan_with(growth: Callable[[Problem], Floats], seed: int, monkeypatch: pytest.MonkeyPatch) -> Plan | None:
    """Return the plan of a random workload; None if there is none."""
    monkeypatch.setattr(tables, "growth_by_pass", growth)
    given = workload(seed, 14, 4)
    try:
        return None if given is None else solve(*given, "gpipe", orders=1)
    except InfeasibleError:
        return None


@pytest.mark.parametrize("seeds", [range(60_000, 60_012), slow(range(60_012, 60_400))])
def test_nothing_is_lost(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without that rule the values are the same; with it there are fewer steps."""
    steps = np.zeros(2)
    for seed in seeds:
        ruled, plain = (plan_with(growth, seed, monkeypatch) for growth in (growth_by_pass, never))
        assert (ruled is None) == (plain is None), seed
        if ruled is not None and plain is not None:
            assert ruled.value == pytest.approx(plain.value, rel=1e-9, abs=1e-12), seed
            steps += [plan.statistics.get("steps", 0) for plan in (ruled, plain)]
    assert steps[0] < steps[1]


@pytest.mark.parametrize("reads", [False, True])
def test_a_transfer_that_would_move_to_the_other_pass_counts(reads: bool) -> None:
    """If node 3 reads node 0, the stage of nodes 1 to 3 receives forward, without node 1 backward."""
    graph = Graph.from_arrays(
        {"accelerator": [1.0, 1.0, 5.0, 1.0]},
        [(0, 1), (1, 2), *([(0, 3)] if reads else [])],
        cost=[4.0, 0.5, *([4.0] if reads else [])],
        backward=[False, False, False, True],
        color=[None, None, 0, 0],
    )
    problem = contract_to(ChainProblem, graph, Devices.accelerated(3), BY_PASS)
    growth = growth_by_pass(problem)[:, 0, problem.member[1]]
    assert growth.tolist() == ([np.inf, np.inf] if reads else [1.0 + 4.0 + 0.5, 0.0])
    assert (read_of_node(problem) == 1).any() == reads
