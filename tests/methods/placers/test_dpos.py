"""DPOS does what FastT's Section 5.1 says: by hand, and as a second implementation in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, InfeasibleError, evaluate, solve
from partitioner.methods.placers.dpos import critical_path, dpos
from partitioner.methods.placers.ranks import largest_rank
from partitioner.methods.placers.timing import finish_times, makespan
from tests.methods.placers.dpos_reference import PlainDpos
from tests.methods.placers.dpos_workloads import as_tasks, random_tasks


def example(memory: float = 2.0) -> tuple[Graph, Devices]:
    """A diamond a -> b, c -> d on a fast device of little memory and a slow one."""
    graph = Graph.from_arrays(
        {"fast": [2.0, 4.0, 1.0, 2.0], "slow": [3.0, 5.0, 2.0, 3.0]},
        [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        [1.0, 2.0, 1.0, 1.0],
        ids=["a", "b", "c", "d"],
        size=1.0,
    )
    return graph, Devices((DeviceKind("fast", 1, memory), DeviceKind("slow", 1)))


def test_ranks_and_critical_path_by_hand() -> None:
    """d: 3. b: 5 + 1 + 3 = 9. c: 2 + 1 + 3 = 6. a: 3 + max(1 + 9, 2 + 6) = 13. The path is a, b, d."""
    tasks = as_tasks(*example())
    rank = largest_rank(tasks)
    assert rank.tolist() == [13.0, 9.0, 6.0, 3.0]
    assert critical_path(tasks, rank).tolist() == [0, 1, 3]


def test_placement_by_hand() -> None:
    """The fast device holds a and b: (2 + 4) / 2 = 3; the slow one all of the path: (3 + 5 + 3) / 3 = 3.7.

    So a runs on it from 0 to 2, b from 2 to 6. It is full: c waits for its input until 2 + 2 = 4 and runs on
    the slow device until 6. For d the rule is asked again; the slow device is left: input at 6 + 1 = 7, end
    at 10.
    """
    tasks = as_tasks(*example())
    found = dpos(tasks)
    assert found is not None
    assert found.device.tolist() == [0, 0, 1, 1]
    assert finish_times(tasks, found.device, found.order).tolist() == [2.0, 6.0, 6.0, 10.0]
    assert (found.order.tolist(), found.estimate) == ([0, 1, 2, 3], 10.0)


def test_with_room_everything_stays_on_the_fast_device() -> None:
    """The path takes 8 / 3 there. c: from 6 to 7 there, from 4 to 6 on the slow one; d from 7 to 9."""
    tasks = as_tasks(*example(memory=4.0))
    found = dpos(tasks)
    assert found is not None
    assert found.device.tolist() == [0, 0, 1, 0]
    assert found.estimate == 9.0


def test_equal_averages_go_to_the_device_that_takes_more() -> None:
    """Both take 1 on average; the second holds two of the three."""
    graph = Graph.from_arrays(
        {"small": [1.0] * 3, "large": [1.0] * 3}, [(0, 1), (1, 2)], 1.0, size=[1.0, 1.0, 1.0]
    )
    devices = Devices((DeviceKind("small", 1, 1.0), DeviceKind("large", 1, 2.0)))
    found = dpos(as_tasks(graph, devices))
    assert found is not None
    assert found.device.tolist() == [1, 1, 0]


def test_another_device_where_the_chosen_one_filled_meanwhile() -> None:
    """Path 0, 1, 3 was to stay on the first device, but 2, of larger rank than 3, is placed before it.

    Task 2 ends at 6 there and, after a transfer of 9, at 12 on the other; then there is no room left.
    """
    graph = Graph.from_arrays(
        {"gpu": [1.0, 3.0, 2.0, 1.0], "npu": [2.0, 4.0, 2.0, 2.0]},
        [(0, 1), (0, 2), (1, 3), (2, 3)],
        [9.0, 9.0, 0.0, 0.0],
        size=1.0,
    )
    devices = Devices((DeviceKind("gpu", 1, 3.0), DeviceKind("npu", 1, 9.0)))
    found = dpos(as_tasks(graph, devices))
    assert found is not None
    assert found.device.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 500), *(pytest.param(first, 1000, marks=pytest.mark.slow) for first in range(1000, 6000, 1000))],
)
def test_as_the_plain_one(first: int, count: int) -> None:
    """Devices, start times and estimate of many random graphs, and where there is no room."""
    placed = full = 0
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        tasks, reserve = random_tasks(rng), bool(rng.random() < 0.7)
        plain, found = PlainDpos(tasks, reserve), dpos(tasks, reserve)
        assert plain.run() == (found is not None)
        if found is None:
            full += 1
            continue
        placed += 1
        assert found.device.tolist() == plain.device
        key = sorted(range(tasks.n), key=lambda v: (plain.start[v], plain.finish[v], v))
        assert found.order.tolist() == key
        assert found.estimate == max(plain.finish)
    assert placed > count / 2
    assert full > count / 50


@pytest.mark.parametrize(
    ("first", "count"), [(10_000, 300), pytest.param(20_000, 3000, marks=pytest.mark.slow)]
)
def test_the_estimate_is_the_makespan_without_contention(first: int, count: int) -> None:
    """A schedule made with idle slots runs as booked, tasks without time included."""
    compared = 0
    for seed in range(first, first + count):
        tasks = random_tasks(np.random.default_rng(seed))
        found = None if tasks.contention else dpos(tasks)
        if found is not None:
            assert makespan(tasks, found.device, found.order) == found.estimate
            compared += 1
    assert compared > count * 3 / 10


def test_the_cutoff_only_stops_what_would_be_as_late() -> None:
    tasks = as_tasks(*example())
    assert dpos(tasks, cutoff=10.0) is None
    assert dpos(tasks, cutoff=10.1) is not None
    assert dpos(tasks, cutoff=10.1, tail=np.array([8.1, 0.0, 0.0, 0.0])) is None


def test_the_method_keeps_to_the_evaluator() -> None:
    """The plan of the example is worth 10 to the evaluator too."""
    graph, devices = example()
    plan = solve(graph, devices, "makespan", method="dpos")
    again = evaluate(graph, devices, plan.placement, "makespan", execution_order=plan.execution_order)
    assert plan.value == again.value == 10.0
    assert plan.placement == {"a": "fast0", "b": "fast0", "c": "slow0", "d": "slow0"}


def test_no_room_is_no_plan() -> None:
    """Three of size 2 fit two devices of 3, by the sum of the memory, but not one by one."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (1, 2)], size=2.0)
    with pytest.raises(InfeasibleError, match="obeys the limits"):
        solve(graph, Devices.accelerated(2, memory=3.0), "makespan", method="dpos")
