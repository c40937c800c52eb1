"""The compiled list scheduler places and times tasks exactly as one in plain Python does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Transfers
from partitioner.methods.placers.engine import place_in_order
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.task_arrays import PartialSchedule, arrays_of, book, new_state
from partitioner.methods.placers.timing import finish_times, makespan
from partitioner.methods.placing import CHOOSERS
from partitioner.problem.arrays import Ints
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.methods.placers.plain import Plain
from tests.random_tasks import Case, random_order, task_cases

FEW_AND_MANY = pytest.mark.parametrize(
    ("first", "count"),
    [(0, 100), *(pytest.param(first, 400, marks=pytest.mark.slow) for first in range(0, 4000, 400))],
)


def placed(case: Case, found: Found) -> list[str]:
    """The device of every node, in the order of the graph."""
    name = case.names(found.device)
    return [name[node] for node in case.graph.ids]


def booked(
    case: Case, order: Ints, found: Found, insertion: bool = True, reserve: bool = True
) -> PartialSchedule:
    """The times at which the engine has every task run: its devices, booked in the order it was given."""
    arrays, state = arrays_of(case.tasks, reserve, insertion), new_state(case.tasks)
    for v in order.tolist():
        book(arrays, state, v, int(found.device[v]))
    assert found.estimate == state.finish.max(initial=0.0)
    return state


@FEW_AND_MANY
def test_the_engine_is_the_plain_scheduler(first: int, count: int) -> None:
    """Devices, starts and finishes under random rules; some graphs do not fit in the order given."""
    stuck = 0
    for case in task_cases(first, count):
        order, rule = random_order(case), str(case.rng.choice(list(CHOOSERS)))
        insertion, reserve = bool(case.rng.random() < 0.7), bool(case.rng.random() < 0.5)
        plain = Plain(case.fitted, case.devices, case.transfers, insertion, reserve)
        fits = plain.run(case.tasks.node[order].tolist(), rule)
        found = place_in_order(case.tasks, order, rule, insertion=insertion, reserve=reserve)
        assert (found is not None) == fits
        if found is None:
            stuck += 1
            continue
        names = case.devices.names
        assert placed(case, found) == [names[plain.place[v][0]] for v in range(len(case.graph))]
        assert found.estimate == max(finish for _, _, finish in plain.place.values())
        state, nodes = booked(case, order, found, insertion, reserve), case.tasks.node.tolist()
        assert state.start.tolist() == [plain.place[v][1] for v in nodes]
        assert state.finish.tolist() == [plain.place[v][2] for v in nodes]
        starts = [plain.place[v][1:] for v in case.tasks.node[found.order].tolist()]
        assert starts == sorted(starts)
    assert stuck > count / 130


@FEW_AND_MANY
def test_nothing_is_lost_overlaps_or_exceeds_the_memory(first: int, count: int) -> None:
    """Every task once, producers first, groups together, one at a time on a device, within the limits."""
    for case in task_cases(first, count):
        tasks = case.tasks
        reserve = bool(case.rng.random() < 0.5)
        rule, order = str(case.rng.choice(list(CHOOSERS))), random_order(case)
        found = place_in_order(tasks, order, rule, reserve=reserve)
        if found is None:
            continue
        state = booked(case, order, found, reserve=reserve)
        for d in range(len(tasks.limit)):
            runs = sorted((state.start[v], state.finish[v]) for v in np.flatnonzero(found.device == d))
            assert all(finish <= start for (_, finish), (start, _) in pairwise(runs))
        assert sorted(found.order.tolist()) == list(range(tasks.n))
        position = np.argsort(found.order)
        assert all(position[u] < position[v] for v in range(tasks.n) for u in tasks.before.row(v))
        assert all(len(set(found.device[tasks.group == g])) == 1 for g in range(len(tasks.group_size)))
        assert np.isfinite(tasks.time[found.device, np.arange(tasks.n)]).all()
        held = np.bincount(found.device, tasks.size, len(tasks.limit))
        assert (held <= tasks.limit).all()


@FEW_AND_MANY
def test_without_contention_the_estimate_is_the_makespan(first: int, count: int) -> None:
    """Exactly: whatever follows an idle slot starts when its inputs arrive, so that nothing moves up."""
    inserted = 0
    for case in task_cases(first, count, contention=False):
        order, insertion = random_order(case), bool(case.rng.random() < 0.7)
        found = place_in_order(case.tasks, order, "earliest_finish", insertion=insertion)
        if found is not None:
            assert makespan(case.tasks, found.device, found.order) == found.estimate
            finish = finish_times(case.tasks, found.device, found.order)
            for d in range(len(case.tasks.limit)):
                mine = [v for v in order.tolist() if found.device[v] == d]
                inserted += any(finish[u] > finish[v] for u, v in pairwise(mine))
    assert inserted > count / 20


def test_a_task_without_time_parts_the_idle_slot_that_it_is_in() -> None:
    """On gpu0, idle until 8: `z` takes no time at 5, so that `t`, 2 long, ready at 4, starts at 5, not 4.

    q and p run on npu0 from 0 to 5 and to 8, o on cpu0 from 0 to 4; links take nothing.
    """
    time = [5.0, 3.0, 4.0, 1.0, 0.0, 2.0]
    kinds = {"npu": [0, 1], "cpu": [2], "gpu": [3, 4, 5]}
    graph = Graph.from_arrays(
        dict.fromkeys(kinds, time),
        [(1, 3), (0, 4), (2, 5)],
        allowed={kind: np.isin(np.arange(6), mine) for kind, mine in kinds.items()},
    )
    devices = Devices(tuple(DeviceKind(kind, 1) for kind in kinds))
    tasks = contract_to(
        OperatorNodes, graph, devices, Goal(Measure.LAST_OPERATOR, "free", transfers=Transfers(0.0))
    ).tasks
    found = place_in_order(tasks, np.arange(6), "earliest_finish")
    assert found is not None and found.order.tolist() == [2, 0, 4, 5, 1, 3]
    assert finish_times(tasks, found.device, found.order).tolist() == [5.0, 8.0, 4.0, 9.0, 5.0, 7.0]
