"""The four methods: memory and groups hold, no task is lost, estimates are kept, clusters come apart.

Adjusting Placement: worked by hand, equal to Algorithm 2 in plain Python, and what the paper proves.

One device after another: worked by hand, and equal to the rule in plain Python.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from partitioner import (
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Transfers,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.methods.list_scheduling.celeritas.fusion import fused
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo, dfs_topo
from partitioner.methods.list_scheduling.celeritas.placers import (
    adjust,
    back_cost,
    fill,
    place_celeritas,
    place_cpd_topo,
    place_dfs_topo,
    place_order_place,
    taken_apart,
)
from partitioner.methods.list_scheduling.coarse import merged
from partitioner.methods.list_scheduling.found import PlaceTasks
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    arrays_of,
    book,
    earliest_start,
    fits,
    new_state,
)
from partitioner.methods.list_scheduling.timing import makespan
from partitioner.methods.method import Settings
from partitioner.methods.placing import Placing
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many
from tests.methods.list_scheduling.celeritas.plain_adjusting import PlainAdjusting
from tests.random_workloads import random_workload


def adjusted(tasks: Tasks, order: Ints, reserve: bool = True) -> tuple[int, PartialSchedule]:
    state = new_state(tasks)
    return int(adjust(arrays_of(tasks, reserve), state, order, back_cost(tasks))), state


def three(cost: float) -> Tasks:
    """Task 0 takes 10; tasks 0 and 1 feed 2, at costs of 1 and `cost`."""
    return tasks_by_hand([10.0, 2.0, 1.0], {(0, 2): 1.0, (1, 2): cost})


def test_a_task_moves_where_waiting_costs_more_than_sending_back() -> None:
    """Task 1: EST 10 on device 0, 0 on device 1; 10 - 0 > back_cost 3, so it moves.

    Task 2 comes from device 1: EST there max(10 + 1, 2) = 11, on device 0 max(10, 2 + 3) = 10, and
    11 - 10 > 0.
    """
    tasks = three(3.0)
    ended, state = adjusted(tasks, np.arange(3))
    assert back_cost(tasks).tolist() == [1.0, 3.0, 0.0]
    assert (ended, state.device.tolist()) == (NOWHERE, [0, 1, 0])
    assert (state.start.tolist(), state.finish.tolist()) == ([0.0, 0.0, 10.0], [10.0, 2.0, 11.0])


@pytest.mark.parametrize("cost", [10.0, 12.0])
def test_a_task_stays_where_sending_back_costs_as_much(cost: float) -> None:
    """Task 1: 10 - 0 is not larger than its back_cost."""
    _, state = adjusted(three(cost), np.arange(3))
    assert state.device.tolist() == [0, 0, 0]
    assert state.finish.tolist() == [10.0, 12.0, 13.0]


def test_a_task_goes_into_an_idle_slot() -> None:
    """Task 2 waits on device 0 for task 1 until 5; task 3 takes 3 of the time before, from 1 to 4."""
    tasks = tasks_by_hand([1.0, 4.0, 1.0, 3.0], {(0, 2): 9.0, (1, 2): 1.0, (0, 3): 9.0})
    order = np.array([1, 0, 2, 3])
    _, state = adjusted(tasks, order)
    plain = PlainAdjusting(tasks, True)
    plain.run(order)
    assert state.device.tolist() == [plain.device[v] for v in range(4)]
    assert state.start.tolist() == [plain.start[v] for v in range(4)]


def test_a_full_device_is_passed_over() -> None:
    """Devices of 3: tasks 0 and 1 fill device 0; task 2 goes to device 1; 3 fits nowhere."""
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 9.0, (1, 2): 9.0}, size=[2.0, 1.0, 2.0, 2.0], memory=3.0)
    ended, state = adjusted(tasks, np.arange(4))
    assert (ended, state.device.tolist()) == (3, [0, 0, 1, NOWHERE])


@few_and_many(*range(8))
def test_equal_to_plain_python(first: int, count: int) -> None:
    """On clusters that take time, with groups, forbidden devices, tight memory and contention."""
    moved = failed = 0
    for seed, tasks in drawn(first, count):
        coarse = merged(tasks, fused(tasks, 1 + seed % 4, 0.5))
        coarse = replace(coarse, time=coarse.time + 1.0)
        order, reserve = cpd_topo(coarse), seed % 3 > 0
        ended, state = adjusted(coarse, order, reserve)
        plain = PlainAdjusting(coarse, reserve)
        assert (plain.run(order) is None) == (ended == NOWHERE), seed
        for v in plain.device:
            found = state.device[v], state.start[v], state.finish[v]
            assert found == (plain.device[v], plain.start[v], plain.end[v]), (seed, v)
        moved += len(set(plain.device.values())) > 1
        failed += ended != NOWHERE
    assert moved > count * 3 / 10 and failed > count / 250, (moved, failed)


@few_and_many(0, 1)
def test_a_move_never_delays_consumers(first: int, count: int) -> None:
    """The proof of Section 5.2: even if all consumers sit on the previous device they have it no later."""
    moves = 0
    for seed, tasks in drawn(first, count):
        if tasks.contention:
            continue
        order, back = cpd_topo(tasks), back_cost(tasks)
        state, arrays, replay = adjusted(tasks, order)[1], arrays_of(tasks), new_state(tasks)
        previous = 0
        for v in order[state.device[order] != NOWHERE]:
            d = int(state.device[v])
            if d != previous and fits(arrays, replay, v, previous):
                stays = earliest_start(arrays, replay, v, previous) + tasks.time[previous, v]
                assert state.finish[v] + back[v] < stays, (seed, v)
                moves += 1
            book(arrays, replay, v, d)
            previous = d
        assert replay.finish.tolist() == state.finish.tolist(), seed
    assert moves > count * 3 / 10, moves


def filled(tasks: Tasks, order: Ints, reserve: bool = True) -> tuple[int, PartialSchedule]:
    state = new_state(tasks)
    return int(fill(arrays_of(tasks, reserve), state, order)), state


def test_a_full_device_is_left_until_all_are_full() -> None:
    """Devices of 4: 3 to the first; 2 makes it full, to the second; 1 there; 2 makes that full, fits nowhere.

    With twice 1 instead, the second is full after one, and the best effort is the first, with 1 left.
    """
    ended, state = filled(tasks_by_hand([1.0] * 4, {}, size=[3.0, 2.0, 1.0, 2.0], memory=4.0), np.arange(4))
    assert (ended, state.device.tolist()) == (3, [0, 1, 1, NOWHERE])
    ended, state = filled(
        tasks_by_hand([1.0] * 5, {}, size=[3.0, 2.0, 1.0, 1.0, 1.0], memory=4.0), np.arange(5)
    )
    assert (ended, state.device.tolist()) == (NOWHERE, [0, 1, 1, 1, 0])


def test_best_effort_takes_the_most_room() -> None:
    """Devices of 4: 1; 4 fills the second; 2 makes that full and goes to the first, then 1 as well."""
    tasks = tasks_by_hand([1.0] * 4, {}, size=[1.0, 4.0, 2.0, 1.0], memory=4.0)
    ended, state = filled(tasks, np.arange(4))
    assert (ended, state.device.tolist()) == (NOWHERE, [0, 1, 0, 0])


def plain_fill(tasks: Tasks, order: Ints, reserve: bool) -> list[int]:
    """The device of every task up to the first that fits nowhere."""
    room, full = tasks.limit.copy(), 0
    home: dict[int, int] = {}
    device: list[int] = []
    for v in order.tolist():
        mates = np.flatnonzero(np.equal(tasks.group, tasks.group[v]))
        may = np.asarray(np.isfinite(tasks.time[:, mates]).all(axis=1))
        new = tasks.group[v] not in home
        need = tasks.size[mates].sum() if new else (0.0 if reserve else tasks.size[v])
        fitting = [d for d in range(len(room)) if may[d] and need <= room[d]]
        if new:
            while full < len(room) and may[full] and need > room[full]:
                full += 1
            best = sorted(fitting, key=lambda d: (d < full, d if d >= full else -room[d], d))
        else:
            best = [d for d in fitting if d == home[tasks.group[v]]]
        if not best:
            break
        home[tasks.group[v]] = best[0]
        taken = need if reserve or not new else tasks.size[v]
        room[best[0]] -= taken
        device.append(best[0])
    return device


@few_and_many(3)
def test_equal_to_the_rule_in_plain_python(first: int, count: int) -> None:
    failed = back = 0
    for seed, tasks in drawn(first, count):
        reserve, order = seed % 2 == 0, dfs_topo(tasks)
        ended, state = filled(tasks, order, reserve)
        expected = plain_fill(tasks, order, reserve)
        assert state.device[order][: len(expected)].tolist() == expected, seed
        assert (ended == NOWHERE) == (len(expected) == tasks.n), seed
        failed += ended != NOWHERE
        back += bool((np.diff(expected) < 0).any())
    assert failed > count / 250 and back > count / 40, (failed, back)


PLACERS = {
    "dfs-topo": place_dfs_topo,
    "cpd-topo": place_cpd_topo,
    "order-place": place_order_place,
    "celeritas": place_celeritas,
}


@few_and_many(0)
@pytest.mark.parametrize("place", PLACERS.values(), ids=PLACERS)
def test_placements_obey_every_limit(place: PlaceTasks, first: int, count: int) -> None:
    found_none = several = 0
    for seed, tasks in drawn(first, count):
        placing = Placing(fusion_range=1 + seed % 5, fusion_memory=0.5, reserve_memory=seed % 3 > 0)
        found = place(tasks, Settings(placing=placing))
        if found is None:
            assert np.isfinite(tasks.limit).any() or not tasks.group_allowed.any(axis=0).all(), seed
            found_none += 1
            continue
        device, position = found.device, np.argsort(found.order)
        assert (np.bincount(device, tasks.size, len(tasks.limit)) <= tasks.limit).all(), seed
        assert np.isfinite(tasks.time[device, np.arange(tasks.n)]).all(), seed
        assert all(len(set(device[tasks.group == g].tolist())) == 1 for g in range(len(tasks.group_size)))
        assert (position[tasks.before.items] < position[tasks.before.owners()]).all(), seed
        if not tasks.contention and (tasks.time > 0).all():
            assert makespan(tasks, device, found.order) <= found.estimate * (1 + 1e-12), seed
        several += len(set(device.tolist())) > 1
    assert found_none < count * 2 / 5 and several > count * 2 / 25, (found_none, several)


def test_clusters_come_apart_where_they_fit_nowhere() -> None:
    """Devices of 5 with a task of 3 each: the cluster of 2 + 2 fits on neither, but one task on either."""
    tasks = tasks_by_hand(
        [1.0] * 4, {(0, 1): 1.0, (2, 3): 9.0, (1, 2): 1.0}, size=[3.0, 3.0, 2.0, 2.0], memory=5.0
    )
    for place in (place_order_place, place_celeritas):
        found = place(tasks, Settings(placing=Placing(fusion_range=2, fusion_memory=0.8)))
        assert found is not None
        assert np.bincount(found.device, tasks.size).tolist() == [5.0, 5.0]
        assert found.statistics["clusters"] == 4


def test_taken_apart_clusters_keep_their_place() -> None:
    cluster, single = np.array([0, 0, 1, 1, 2]), np.array([False, False, True, True, False])
    assert taken_apart(cluster, single).tolist() == [0, 0, 1, 2, 3]
    assert taken_apart(np.array([0, 1, 0, 1]), np.array([True, False, True, False])).tolist() == [0, 2, 1, 2]


def test_figures_of_the_fusion() -> None:
    """Ratio (5 + 1 + 4) / 4 before, 1 / 4 after fusing two pairs."""
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0}, size=1.0)
    found = place_celeritas(tasks, Settings(placing=Placing(fusion_memory=0.5)))
    assert found is not None
    assert found.statistics == {"clusters": 2.0, "ccr": 2.5, "ccr_fused": 0.25}


@pytest.mark.parametrize(("first", "count"), [(70_000, 6), pytest.param(70_006, 19, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PLACERS)
def test_solve_and_evaluator_agree(name: str, first: int, count: int) -> None:
    plans = 0
    for seed, contention in product(range(first, first + count), (False, True)):
        graph, devices = random_workload(np.random.default_rng(seed), 12, 4)
        transfers = Transfers(contention=contention)
        try:
            plan = solve(graph, devices, "makespan", method=name, transfers=transfers, fusion_range=3)
        except (InfeasibleError, NoPlanFound, WorkloadError):
            continue
        again = evaluate(
            graph,
            devices,
            plan.placement,
            "makespan",
            transfers=transfers,
            execution_order=plan.execution_order,
        )
        assert again.feasible and again.value == pytest.approx(plan.value), seed
        assert plan.bound <= plan.value * (1 + 1e-9)
        plans += 1
    assert plans > count * 12 / 25, plans


def test_two_devices_are_better_than_one_where_transfers_are_cheap() -> None:
    """Two chains of 10 steps side by side: Adjusting sends one away, Order-Place never does."""
    edges = [(v, v + 2) for v in range(18)]
    graph = Graph.from_arrays({"accelerator": [1.0] * 20}, edges, 0.5, size=1.0)
    two = Devices.accelerated(2)
    plans = {name: solve(graph, two, "makespan", method=name, fusion_range=5) for name in PLACERS}
    assert plans["order-place"].value == 20.0
    assert plans["celeritas"].value == 10.0
