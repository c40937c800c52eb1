"""Every order is topological; depth-first orders finish a branch before they open the next."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.problem.arrays import Ints
from partitioner.problem.contract import contract
from partitioner.problem.orders import depth_first, reverse_postorder
from partitioner.problem.problem import Problem


def random_problem(seed: int) -> Problem:
    """A random precedence over 30 supernodes."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for u in range(30) for v in range(u + 1, 30) if rng.random() < 0.08]
    return contract(Graph.from_arrays({"accelerator": np.ones(30)}, edges, 1.0), Devices.accelerated(2))


def is_topological(problem: Problem, order: Ints) -> bool:
    """Does every supernode come after its predecessors, and each once?"""
    place = np.empty(problem.n, dtype=np.int64)
    place[order] = np.arange(problem.n)
    earlier = np.repeat(np.arange(problem.n), np.diff(problem.successors.start))
    return sorted(order.tolist()) == list(range(problem.n)) and bool(
        (place[earlier] < place[problem.successors.items]).all()
    )


@pytest.mark.parametrize("seed", range(20))
def test_orders_are_topological(seed: int) -> None:
    """Whatever the priorities, and the problem's own numbering too."""
    problem = random_problem(seed)
    priority = np.random.default_rng(seed).random(problem.n)
    assert is_topological(problem, np.arange(problem.n))
    assert is_topological(problem, depth_first(problem.successors, problem.predecessors))
    assert is_topological(problem, depth_first(problem.successors, problem.predecessors, priority))
    assert is_topological(problem, reverse_postorder(problem.successors, priority))


def test_branches_are_finished_first() -> None:
    """Of two branches of three nodes each, one is done before the other begins."""
    edges = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6), (3, 7), (6, 7)]
    graph = Graph.from_arrays({"accelerator": np.ones(8)}, edges, 1.0)
    problem = contract(graph, Devices.accelerated(2))
    branch = [problem.member[[1, 2, 3]].tolist(), problem.member[[4, 5, 6]].tolist()]
    order = depth_first(problem.successors, problem.predecessors).tolist()
    assert order[1:4] in branch
    assert order[4:7] in branch
