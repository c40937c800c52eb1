"""Refined placements are never worse, obey every rule, follow from the seed, and are optimal on few tasks."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.base.clock import Clock
from partitioner.methods.method import Settings
from partitioner.methods.placers.first_fit import place_first_fit
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.heft import place_heft
from partitioner.methods.placers.refine import RefinementEffort, refined
from partitioner.methods.placers.timing import makespan
from partitioner.problem.tasks import Tasks
from tests.methods.placers.cases import cases, problem_of
from tests.oracle_makespan import least_makespan

EFFORT = "partitioner.methods.placers.refine.EFFORT"


def start_of(tasks: Tasks) -> Found | None:
    """What HEFT or first fit find."""
    return place_heft(tasks, Settings()) or place_first_fit(tasks, Settings())


def value_of(tasks: Tasks, found: Found) -> float:
    """The makespan."""
    return makespan(tasks, found.device, found.order)


def large() -> tuple[Tasks, Found]:
    """Some tens of tasks, and where HEFT puts them."""
    for _, graph, devices, transfers in cases(37, 100, 32):
        tasks = problem_of(graph, devices, transfers).tasks
        start = None if tasks is None else start_of(tasks)
        if tasks is not None and start is not None and tasks.n > 20:
            return tasks, start
    raise AssertionError


@pytest.mark.parametrize(("first", "count"), [(0, 60), pytest.param(60, 190, marks=pytest.mark.slow)])
def test_refined_placements_are_never_worse_and_obey(
    monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    monkeypatch.setattr(EFFORT, RefinementEffort(moves=900))
    better = 0
    for _, graph, devices, transfers in cases(first, count, 14):
        tasks = problem_of(graph, devices, transfers).tasks
        start = start_of(tasks)
        if start is None:
            continue
        found = refined(tasks, start, Settings())
        better += value_of(tasks, found) < value_of(tasks, start)
        assert value_of(tasks, found) <= value_of(tasks, start)
        assert_obeys(tasks, found)
    assert better > count * 3 / 25


def assert_obeys(tasks: Tasks, found: Found) -> None:
    """Memory, groups, kinds, and an order with producers before consumers."""
    held = np.bincount(found.device, tasks.size, len(tasks.limit))
    assert (held <= tasks.limit).all()
    assert all(len(np.unique(found.device[tasks.group == g])) == 1 for g in np.unique(tasks.group))
    assert np.isfinite(tasks.time[found.device, np.arange(tasks.n)]).all()
    place = np.argsort(found.order)
    assert sorted(found.order.tolist()) == list(range(tasks.n))
    assert (place[tasks.after.owners()] < place[tasks.after.items]).all()


@pytest.mark.parametrize(("first", "count"), [(2_000, 6), pytest.param(2_006, 18, marks=pytest.mark.slow)])
def test_they_are_optimal_where_all_placements_can_be_tried(
    monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    monkeypatch.setattr(EFFORT, RefinementEffort(moves=20_000))
    tried = 0
    for seed, graph, devices, transfers in cases(first, count, 4):
        tasks = problem_of(graph, devices, transfers).tasks
        start = start_of(tasks)
        if start is not None:
            best = least_makespan(graph, devices, transfers)
            assert value_of(tasks, refined(tasks, start, Settings())) == pytest.approx(best), seed
            tried += 1
    assert tried > count / 3


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EFFORT, RefinementEffort(moves=3_000))
    tasks, start = large()
    first, again = (refined(tasks, start, Settings(seed=3)) for _ in range(2))
    assert (first.device == again.device).all()
    assert (first.order == again.order).all()


def test_it_stops_at_the_bound_and_at_the_deadline() -> None:
    tasks, start = large()
    late = Settings(clock=Clock(0.0))
    assert refined(tasks, start, late).statistics["moves"] == 0
    assert refined(tasks, start, Settings(), value_of(tasks, start)).statistics["moves"] == 0
