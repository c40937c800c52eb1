"""Proven optima are equal, or ordered, as theory says when a workload is changed in known ways."""

from __future__ import annotations

import pytest

from partitioner import Devices, Graph, solve
from tests.relations import QUICK, SOLVED, compared, random_case


def relations(seed: int, objective: str, split: str) -> int:
    """How many relations were compared, each of which must hold."""
    found = list(compared(seed, objective, split))
    assert not [(seed, what, wrong) for what, wrong in found if wrong]
    return len(found)


@pytest.mark.parametrize(("objective", "split"), QUICK)
def test_chains(objective: str, split: str) -> None:
    assert sum(relations(seed, objective, split) for seed in range(1009, 1011)) > 8


@pytest.mark.parametrize(
    ("objective", "split"),
    [SOLVED[0], *(pytest.param(*asked, marks=pytest.mark.slow) for asked in (SOLVED[1], SOLVED[-1]))],
)
def test_what_solvers_prove(objective: str, split: str) -> None:
    assert relations(3, objective, split) > 4


@pytest.mark.slow
def test_an_edge_less_can_cost_more_under_gpipe() -> None:
    """Without 0 -> 1 only the backward node reads the tensor of 0: its transfer of 2 moves to that pass.

    0 | 1 2 takes 5 + 2 forward on the first device and 2 backward on the second one, 7 + 2 = 9; without the
    edge 7 + (2 + 2) = 11. All on one device takes 8 + 2 = 10, but does not fit its memory.
    """
    times, backward = {"accelerator": [5.0, 3.0, 2.0]}, [False, False, True]
    devices = Devices.accelerated(2, memory=4.8)
    values = []
    for edges, cost in (([(0, 1), (0, 2), (1, 2)], [2.0, 2.0, 1.0]), ([(0, 2), (1, 2)], [2.0, 1.0])):
        graph = Graph.from_arrays(times, edges, cost, size=[3.0, 1.0, 2.0], backward=backward)
        plan = solve(graph, devices, "gpipe", split="free")
        assert plan.status == "optimal"
        values.append(plan.value)
    assert values == [9.0, 11.0]


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "split"), QUICK)
def test_chains_in_hundreds_of_relations(objective: str, split: str) -> None:
    assert sum(relations(seed, objective, split) for seed in range(2000, 2060)) > 350


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "split"), SOLVED)
def test_what_solvers_prove_often(objective: str, split: str) -> None:
    assert sum(relations(seed, objective, split) for seed in range(3000, 3004)) > 15


@pytest.mark.parametrize("method", ["dpl", "local_search", "dp", "ip"])
@pytest.mark.parametrize("scale", [2.0**-330, 2.0**-100, 1.0, 2.0**100, 2.0**320])
def test_every_method_finds_a_plan_in_the_whole_range(method: str, scale: float) -> None:
    case = random_case(7)
    case.memory, case.scale = None, scale
    split = "free" if method in ("local_search", "ip") else "chain"
    plan = solve(*case.build(), method=method, split=split, gap=0.9)
    assert plan.value > 0
