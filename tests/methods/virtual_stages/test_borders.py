"""Moves keep chains chains, of one supernode or of borders, empty no stage, and mend what lacks memory."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.virtual_stages.borders import StageBorders, boundary_moves, fitted
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem


def random_problem(seed: int) -> Problem:
    random = np.random.default_rng(seed)
    edges = [(i, j) for i in range(8) for j in range(i + 1, 8) if random.random() < 0.3]
    graph = Graph.from_arrays({"accelerator": [1.0] * 8}, edges, size=1.0)
    return contract(graph, Devices.accelerated(3, memory=4.0), Goal(Measure.LARGEST_LOAD, "chain"))


@pytest.mark.parametrize("seed", range(20))
def test_every_move_and_no_other(seed: int) -> None:
    """Against all single changes of stage by one, where no edge may lead back."""
    problem = random_problem(seed)
    stage = np.sort(np.arange(problem.n) % 3)
    owner = np.repeat(np.arange(problem.n), np.diff(problem.successors.start))
    assert (stage[owner] <= stage[problem.successors.items]).all()
    expected = set()
    for node in range(problem.n):
        for step in (-1, 1):
            moved = stage.copy()
            moved[node] += step
            sound = 0 <= moved[node] <= stage.max() and set(moved) == set(stage)
            if sound and (moved[owner] <= moved[problem.successors.items]).all():
                expected.add(tuple(moved))
    found = [tuple(moved) for moved in boundary_moves(problem, stage)]
    assert set(found) == expected and len(found) == len(expected)


def lacking(weight: np.ndarray, limit: float, borders: StageBorders) -> float:
    """What stages are heavier than a limit, together."""
    return float(np.maximum(0, np.bincount(borders.stage, weight) - limit).sum())


@pytest.mark.parametrize("seed", range(50))
def test_stages_are_moved_until_they_fit_or_no_move_helps(seed: int) -> None:
    """Those that fit stay as they are."""
    rng = np.random.default_rng(seed)
    weight, limit = rng.integers(1, 9, 12).astype(float), float(rng.integers(10, 30))
    start = StageBorders.of(np.sort(rng.permutation(np.arange(12) % 4)))
    found = fitted(start, lambda borders: lacking(weight, limit, borders), lambda: False)
    assert (found is start) == (lacking(weight, limit, start) == 0)
    if found is not None:
        assert lacking(weight, limit, found) == 0 and np.diff(found.borders).min() >= 1
    elif weight.sum() <= limit:
        pytest.fail("one stage could hold everything")
    assert fitted(start, lambda borders: 1.0, lambda: False) is None


def test_stages_are_not_moved_when_the_time_is_over() -> None:
    start = StageBorders.of(np.array([0, 0, 0, 1]))
    assert fitted(start, lambda borders: float(borders.borders[1]), lambda: True) is None
