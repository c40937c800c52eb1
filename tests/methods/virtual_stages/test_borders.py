"""Moves over boundaries keep chains chains: one supernode, to a neighbouring stage, no stage emptied."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.virtual_stages.borders import boundary_moves
from partitioner.problem.contract import Goal, contract
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
