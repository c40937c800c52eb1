"""One device after another: worked by hand, and equal to the rule in plain Python."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.celeritas.fill import fill
from partitioner.methods.list_scheduling.celeritas.orders import dfs_topo
from partitioner.methods.list_scheduling.task_arrays import NOWHERE, PartialSchedule, arrays_of, new_state
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many


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
