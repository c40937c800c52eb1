"""FastT's Theorem 1, makespan <= 2 * optimum without transfers + C_max on equal devices with memory enough.

It holds on random graphs where every task goes where it finishes first. It does not hold for DPOS as
Algorithm 1 states it: a task of the critical path waits for its device while others are idle, which no case
of the proof of Lemma 1 allows for.
"""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.placers.dpos import dpos
from partitioner.problem.tasks import Tasks
from tests.methods.placers.dpos_ideal import best_without_transfers, largest_transfers
from tests.methods.placers.dpos_workloads import as_tasks

NO_PATH = np.zeros(0, dtype=np.int64)


def random_equal(rng: np.random.Generator) -> Tasks:
    """Up to seven tasks on two or three equal devices."""
    n = int(rng.integers(2, 8))
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < rng.choice([0.2, 0.5])]
    time = rng.choice([0.0, 1.0, 2.0, 3.0, 5.0, 8.0], n)
    cost = rng.choice([0.0, 0.0, 1.0, 2.0, 5.0], len(edges))
    graph = Graph.from_arrays({"accelerator": time}, edges, cost)
    return as_tasks(graph, Devices.accelerated(int(rng.integers(2, 4))))


def time_by_dpos(tasks: Tasks, pinned: bool = True) -> float:
    """What DPOS counts on, with the critical path on a device of its own or without."""
    found = dpos(tasks, path=None if pinned else NO_PATH)
    assert found is not None
    return found.estimate


def test_the_bound_holds_where_all_tasks_go_where_they_finish_first() -> None:
    """And is not idle: the optimum is missed now and then."""
    missed = 0
    for seed in range(400):
        tasks = random_equal(np.random.default_rng(seed))
        best, time = best_without_transfers(tasks), time_by_dpos(tasks, pinned=False)
        assert time <= (2 * best + largest_transfers(tasks)) * (1 + 1e-12)
        missed += time > best * (1 + 1e-9)
    assert missed > 20


@pytest.mark.parametrize(("first", "count"), [(0, 100), pytest.param(100, 300, marks=pytest.mark.slow)])
def test_the_bound_holds_for_dpos_on_most_graphs(first: int, count: int) -> None:
    """On these random graphs; the next test has one where it does not."""
    for seed in range(first, first + count):
        tasks = random_equal(np.random.default_rng(seed))
        bound = 2 * best_without_transfers(tasks) + largest_transfers(tasks)
        assert time_by_dpos(tasks) <= bound * (1 + 1e-12)


def counterexample(levels: int) -> Tasks:
    """A path of tasks without time, the last one of 1, and at each level a task of 1 beside it.

    All ranks are 1, so tasks are placed by number: each task beside the path before the path's next one.
    All devices are free then, and it takes the first, the path's, on which the path then waits for it.
    """
    time, edges, tail = [0.0, 1.0], [], 0
    for _ in range(1, levels):
        joint = len(time)
        edges += [(tail, joint)]
        time += [0.0, 0.0, 1.0]
        edges += [(joint, joint + 1), (joint, joint + 2)]
        tail = joint + 1
    edges += [(tail, len(time))]
    graph = Graph.from_arrays({"accelerator": [*time, 1.0]}, edges, 0.0)
    return as_tasks(graph, Devices.accelerated(levels + 1))


def test_the_theorem_fails_for_the_critical_path_rule() -> None:
    """Six tasks of which three take 1, on three devices, without transfers: 3 instead of at most 2 * 1.

    0 (0) -> 2 (0) -> 3 (0) -> 5 (1), and 4 (1) after 2; 1 (1) stands alone. 0 takes the first device, 1 too;
    2 waits for it until 1; 4 takes the first device from 1 to 2, and 5, of the path, follows until 3.
    """
    tasks = counterexample(2)
    found = dpos(tasks)
    assert found is not None
    assert tasks.time[0].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert found.device.tolist() == [0] * 6
    assert (found.estimate, best_without_transfers(tasks), largest_transfers(tasks)) == (3.0, 1.0, 0.0)
    assert time_by_dpos(tasks, pinned=False) == 1.0


@pytest.mark.parametrize("levels", [3, 5, 9])
def test_no_constant_factor_holds_for_it(levels: int) -> None:
    """With k tasks beside the path on k + 1 devices DPOS takes k + 1 times the optimum of 1."""
    tasks = counterexample(levels)
    assert time_by_dpos(tasks) == levels + 1
    assert time_by_dpos(tasks, pinned=False) == 1.0


def test_it_fails_without_ties_and_with_every_time_above_zero() -> None:
    """With e = 1/64: path 0, 1, 3, 4, 6 of e, e, e, e, 1, its edges 1 -> 3 and 4 -> 6 of 8e, others of 0.

    Beside it 2 (1 + 14e) after 0 and 5 (1 + 4e) after 3, edges of 2e. Ranks: 6: 1, 4: 1 + 9e, 5: 1 + 4e,
    3: 1 + 10e, 1: 1 + 19e, 2: 1 + 14e. So 2 is placed after 1 and before 3: on the path's device at 2e, on
    any other at 3e. It goes there, and 5 likewise: 3 + 22e. Without transfers 1 + 15e would do.
    """
    e = 1 / 64
    graph = Graph.from_arrays(
        {"accelerator": [e, e, 1 + 14 * e, e, e, 1 + 4 * e, 1.0]},
        [(0, 1), (0, 2), (1, 3), (3, 4), (3, 5), (4, 6)],
        [0.0, 2 * e, 8 * e, 0.0, 2 * e, 8 * e],
    )
    tasks = as_tasks(graph, Devices.accelerated(3))
    assert time_by_dpos(tasks) == 3 + 22 * e
    assert (best_without_transfers(tasks), largest_transfers(tasks)) == (1 + 15 * e, 16 * e)
    assert 3 + 22 * e > 2 * (1 + 15 * e) + 16 * e
    assert time_by_dpos(tasks, pinned=False) <= 2 * (1 + 15 * e) + 16 * e
