"""A bracket without an incumbent finds the optimum from either end."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.dp.bracket import TableBracket
from partitioner.methods.dp.chain import ChainTables
from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.method import Settings
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to

TIMES = [3.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("from_top", [False, True])
@pytest.mark.parametrize(("memory", "value"), [(4.0, 6.5), (2.0, np.inf)])
def test_no_incumbent_is_no_proof_of_infeasibility(from_top: bool, memory: float, value: float) -> None:
    graph = Graph.from_arrays({"accelerator": TIMES}, [(0, 1), (1, 2), (2, 3)], cost=0.5, size=2.0)
    problem = contract_to(ChainProblem, graph, Devices.accelerated(2, memory=memory))
    lattice = ideal_lattice(problem, 1000, 10_000, lambda: False)
    assert lattice is not None
    bracket = TableBracket(ChainTables(problem, relax(problem), lattice), Settings(), 0.0, np.inf)
    bracket.narrow(from_top=from_top)
    assert bracket.complete and bracket.value == bracket.bound == value


def test_a_price_of_zero_offers_nothing_at_any_load() -> None:
    relaxation = Relaxation(1.0, np.ones(2), np.array([0.0, 2.0]), np.array([3.0, 0.0]))
    counts, memory = np.array([1, 0]), np.array([5.0, np.inf])
    assert relaxation.capacity(np.inf, counts, memory) == 15.0
    assert relaxation.capacity(4.0, np.array([1, 1]), memory) == 23.0
