"""Makespans get the best of all placers, and a placement where memory is too tight for them."""

from __future__ import annotations

import pytest

from partitioner import Devices, Graph, InfeasibleError, NoPlanFound, solve
from partitioner.methods.method import Settings
from partitioner.methods.placers.first_fit import place_first_fit
from partitioner.methods.placers.heft import place_heft
from partitioner.methods.placers.portfolio import placers
from partitioner.methods.placers.refine import RefinementEffort
from partitioner.workload.transfers import DEFAULT_TRANSFERS
from tests.methods.placers.cases import cases, problem_of

ROUNDING = 1 + 1e-12  # what is this close to the bound is optimal, and nothing else is tried
TIGHT = Graph.from_arrays({"accelerator": [1.0] * 5}, [], size=[2.0, 2.0, 2.0, 3.0, 3.0])


def test_it_says_where_the_plan_comes_from() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 2), (1, 2)], cost=0.0)
    plan = solve(graph, Devices.accelerated(2), "makespan", method="portfolio")
    assert (plan.method, plan.value, plan.status) == ("portfolio", 2.0, "optimal")
    assert plan.notes[0].startswith("started from ")


@pytest.mark.parametrize(
    ("first", "count"),
    [(300, 4), *(pytest.param(*some, marks=pytest.mark.slow) for some in ((304, 8), (400, 300)))],
)
def test_it_is_at_least_as_good_as_every_placer(
    monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    monkeypatch.setattr("partitioner.methods.placers.refine.EFFORT", RefinementEffort(moves=300))
    assert "heft" in placers()
    compared = 0
    for seed, graph, devices, transfers in cases(first, count, 10):
        try:
            best = solve(graph, devices, "makespan", transfers=transfers).value
        except (NoPlanFound, InfeasibleError):
            continue
        for name in placers():
            try:
                plan = solve(graph, devices, "makespan", method=name, transfers=transfers, time_limit=5.0)
            except NoPlanFound:
                continue
            assert best <= plan.value * ROUNDING, (seed, name)
            compared += 1
    assert compared > count


def test_first_fit_finds_room_where_heft_does_not() -> None:
    problem = problem_of(TIGHT, Devices.accelerated(2, memory=6.0), DEFAULT_TRANSFERS)
    assert place_heft(problem.tasks, Settings()) is None
    found = place_first_fit(problem.tasks, Settings())
    assert found is not None
    assert sorted(problem.tasks.size[found.device == 0].tolist()) in ([3.0, 3.0], [2.0, 2.0, 2.0])
    assert solve(TIGHT, Devices.accelerated(2, memory=6.0), "makespan").value == 3.0


def test_without_room_there_is_a_proof() -> None:
    with pytest.raises(InfeasibleError):
        solve(TIGHT, Devices.accelerated(2, memory=5.0), "makespan")
    threes = Graph.from_arrays({"accelerator": [1.0] * 3}, [], size=2.0)
    with pytest.raises(InfeasibleError, match="obeys the limits"):
        solve(threes, Devices.accelerated(2, memory=3.5), "makespan")


def test_it_starts_from_a_given_placement() -> None:
    devices = Devices.accelerated(2, memory=6.0)
    given = dict.fromkeys(range(3), "accelerator0") | dict.fromkeys((3, 4), "accelerator1")
    plan = solve(TIGHT, devices, "makespan", warm_start=given)
    assert plan.notes[0].startswith("started from the given placement")
    assert plan.value == 3.0
