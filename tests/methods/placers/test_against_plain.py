"""m-ETF, m-SCT's placement and ETF do what a plain program does, task by task; memory is never exceeded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner.methods.method import Settings
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.m_etf import place_etf, place_m_etf
from partitioner.methods.placers.queues import place_by_events
from partitioner.methods.placers.ranks import upward_rank
from partitioner.methods.placers.task_arrays import NOWHERE
from partitioner.methods.placing import Placing
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.placers.plain_baechi import EarliestFirst, Simulation, World
from tests.methods.placers.small_tasks import some_tasks

SIZES = [60, pytest.param(3000, marks=pytest.mark.slow)]


def random_favourites(tasks: Tasks, seed: int) -> Ints:
    """For some tasks a consumer, each the favourite of one task at most."""
    rng = np.random.default_rng(seed)
    favourite, taken = np.full(tasks.n, NOWHERE), set()
    for u in rng.permutation(tasks.n).tolist():
        children = [v for v in tasks.after.row(u).tolist() if v not in taken]
        if children and rng.random() < 0.8:
            favourite[u] = rng.choice(children)
            taken.add(int(favourite[u]))
    return favourite


def agrees(tasks: Tasks, world: World, found: Found | None) -> bool:
    """Is all the same? True if there is a placement."""
    assert (found is None) == (len(world.where) < tasks.n)
    if found is None:
        return False
    assert found.device.tolist() == [world.where[v] for v in range(tasks.n)]
    assert found.estimate == max(world.end.values())
    begin = [world.begin[v] for v in found.order.tolist()]
    assert begin == sorted(begin)
    place = np.argsort(found.order)
    assert (place[tasks.before.items] < place[tasks.before.owners()]).all()
    used = np.bincount(found.device, tasks.size, len(tasks.limit))
    assert (used <= tasks.limit).all()
    assert all(len(set(found.device[tasks.group == g].tolist())) == 1 for g in tasks.group.tolist())
    return True


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("reserve", [True, False])
def test_m_etf(reserve: bool, count: int) -> None:
    placing = Placing(reserve_memory=reserve)
    placed = [
        agrees(
            tasks, Simulation(tasks, [None] * tasks.n, reserve), place_m_etf(tasks, Settings(placing=placing))
        )
        for _, tasks in some_tasks(0, count)
    ]
    assert count // 2 < sum(placed) < count


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("reserve", [True, False])
def test_m_sct_with_given_favourites(reserve: bool, count: int) -> None:
    placed, moved = 0, 0
    for seed, tasks in some_tasks(10_000, count):
        favourite = random_favourites(tasks, seed)
        given = [None if f == NOWHERE else f for f in favourite.tolist()]
        found = place_by_events(tasks, favourite, reserve)
        placed += agrees(tasks, Simulation(tasks, given, reserve), found)
        plain = place_by_events(tasks, np.full(tasks.n, NOWHERE), reserve)
        if found is not None and plain is not None:
            moved += found.device.tolist() != plain.device.tolist()
    assert count // 2 < placed < count
    assert moved > count // 20


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("reserve", [True, False])
def test_etf(reserve: bool, count: int) -> None:
    placing = Placing(reserve_memory=reserve)
    placed = [
        agrees(
            tasks,
            EarliestFirst(tasks, upward_rank(tasks).tolist(), reserve),
            place_etf(tasks, Settings(placing=placing)),
        )
        for _, tasks in some_tasks(20_000, count)
    ]
    assert count // 2 < sum(placed) < count


def test_contention_matters() -> None:
    """The random tasks tell channels from free links: estimates differ in many of them."""
    differ = 0
    for _, tasks in some_tasks(30_000, 300):
        estimates = {
            found.estimate
            for contention in (True, False)
            if (found := place_m_etf(replace(tasks, contention=contention), Settings())) is not None
        }
        differ += len(estimates) > 1
    assert differ > 15
