"""Neither transfers that say "never cut this" nor a solver's error stop m-SCT and the portfolio."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from partitioner import Devices, Graph, evaluate, solve
from partitioner.methods.method import Settings
from partitioner.methods.placers import m_sct
from partitioner.methods.placers.m_sct import favourite_children
from partitioner.methods.placers.task_arrays import NOWHERE
from tests.methods.placers.small_tasks import some_tasks


def huge(seed: int) -> tuple[Graph, Devices]:
    rng = random.Random(seed)
    n = rng.randint(3, 9)
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.4]
    cost = [rng.choice([0.5, 1.0, 2.0, 1e20, 1e25, 1e30]) for _ in edges]
    time = [rng.choice([0.0, 0.5, 1.0, 3.0]) for _ in range(n)]
    return Graph.from_arrays({"accelerator": time}, edges, cost), Devices.accelerated(2)


@pytest.mark.parametrize(("first", "count"), [(0, 4), pytest.param(4, 16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["m-sct", "portfolio"])
def test_what_must_never_be_cut_is_no_obstacle(method: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        graph, devices = huge(seed)
        plan = solve(graph, devices, "makespan", method=method)
        order = plan.execution_order
        again = evaluate(graph, devices, plan.placement, "makespan", execution_order=order)
        assert plan.value == again.value
        assert not any("linear program" in note for note in plan.notes)


def test_a_unit_of_time_changes_nothing() -> None:
    for _, tasks in some_tasks(500, 30):
        child = favourite_children(tasks, Settings()).child
        scaled = {name: getattr(tasks, name) * 2.0**60 for name in ("time", "slope", "intercept")}
        larger = replace(tasks, **scaled)
        assert favourite_children(larger, Settings()).child.tolist() == child.tolist()


def test_whatever_the_solver_raises_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AttributeError("no attribute 'canonical_code'")

    monkeypatch.setattr(m_sct, "solve_highs", broken)
    for _, tasks in some_tasks(0, 3):
        favourites = favourite_children(tasks, Settings())
        assert (favourites.child == NOWHERE).all()
        assert favourites.notes == (
            "m-SCT's linear program could not be solved: no task has a favourite child",
        )
