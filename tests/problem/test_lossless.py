"""Nothing is lost by contracting: the best parts of the problem are worth what the oracle finds."""

from __future__ import annotations

import pytest

from partitioner import Devices, Graph
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from tests.oracle import best_values
from tests.random_problems import best_parts, cases

CHUNK = 500


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 80), *(pytest.param(first, CHUNK, marks=pytest.mark.slow) for first in range(0, 2000, CHUNK))],
)
def test_the_optimum_is_that_of_the_graph(first: int, count: int) -> None:
    """For chains, convex and free splits, both objectives, all rules of contiguity; some are infeasible."""
    checked = merged = infeasible = 0
    for case in cases(first, count):
        options = (case.objective, case.contiguous_cpus, case.contiguous_backward)
        best = best_values(case.graph, case.devices, *options)
        for split in ("chain", "convex", "free"):
            problem = case.problem(split)
            if problem.n > 5:
                continue
            found = best_parts(problem)
            where = (case.seed, split)
            assert (found is None) == (best[split] is None), where
            assert found is None or found[0] == pytest.approx(best[split], rel=1e-9, abs=1e-12), where
            checked += 1
            merged += problem.n < len(case.graph)
            infeasible += found is None
    assert checked > count
    assert merged > count
    assert infeasible > count // 50


@pytest.mark.parametrize("communication", ["sequential", "overlapped", "duplex"])
def test_a_free_node_may_pay_by_shifting_a_transfer(communication: str) -> None:
    """Node h (10) feeds f (0) forward and b (4) backward, at cost 2; no device has room for h and b.

    With f beside h the largest forward load is 10 and 2 for the transfer, if they add up, and the
    backward one 4 and 2; with f beside b the transfer to b is a forward one, and there it does not
    add to anything. So f does not join h, its only neighbour.
    """
    graph = Graph.from_arrays(
        {"accelerator": [10.0, 0.0, 4.0]},
        [("h", "f"), ("h", "b")],
        2.0,
        ids="hfb",
        backward=[False, False, True],
        size=[1.0, 0.0, 1.0],
    )
    devices = Devices.accelerated(2, memory=1.0, communication=communication)
    problem = contract(graph, devices, Goal(Measure.LARGEST_LOAD_BY_PASS, "free"))
    found = best_parts(problem)
    assert problem.n == 3
    assert found is not None
    assert found[0] == (16.0 if communication == "sequential" else 14.0)
    assert contract(graph, devices, Goal(Measure.LARGEST_LOAD, "free")).n == 2
