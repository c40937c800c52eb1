"""Adjusting Placement: worked by hand, equal to Algorithm 2 in plain Python, and what the paper proves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner.methods.list_scheduling.celeritas.adjusting import adjust, back_cost
from partitioner.methods.list_scheduling.celeritas.fusion import fused
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.coarse import merged
from partitioner.methods.list_scheduling.task_arrays import (
    NOWHERE,
    PartialSchedule,
    arrays_of,
    book,
    earliest_start,
    fits,
    new_state,
)
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many
from tests.methods.list_scheduling.celeritas.plain_adjusting import PlainAdjusting


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
