"""Kernighan's breakpoints: worked by hand, and the best of all choices on small graphs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partitioner.methods.list_scheduling.celeritas.breakpoints import breakpoints
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.ranks import mean_transfer
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.small_tasks import some_tasks

IN_FILE_ORDER = np.arange(4)


def begin_places(tasks: Tasks, most: int, memory: float = np.inf) -> list[int]:
    return np.flatnonzero(breakpoints(tasks, IN_FILE_ORDER, most, memory)).tolist()


def test_a_chain_with_a_shortcut() -> None:
    """At most two tasks a cluster.

    S(1) = cost(0, 1) = 5 + 2 = 7; S(2) = min(7 + cost(1, 2) = 8, cost(0, 2) = 1 + 2 = 3) = 3;
    S(3) = min(3 + 4, 7 + cost(1, 3) = 7 + 4) = 7; S(4) = min(7 + 0, 3 + 0) = 3: clusters 0-1 and 2-3.
    """
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0, (0, 3): 2.0})
    assert begin_places(tasks, 2) == [0, 2]
    assert begin_places(tasks, 4) == [0]
    assert begin_places(tasks, 1) == [0, 1, 2, 3]
    # three: {0} {1 2 3} costs 7, {0 1 2} {3} costs 4 + 2 = 6, {0 1} {2 3} costs 3
    assert begin_places(tasks, 3) == [0, 2]


def test_memory_limits_clusters() -> None:
    """Sizes 3, 1, 1, 3: within 4, {0 1} {2 3} costs 9, {0} {1 2} {3} only 2; within 5, {0} {1 2 3} 1."""
    edges = {(0, 1): 1.0, (1, 2): 9.0, (2, 3): 1.0}
    assert begin_places(tasks_by_hand([1.0] * 4, edges, size=[3.0, 1.0, 1.0, 3.0]), 4, 4.0) == [0, 1, 3]
    assert begin_places(tasks_by_hand([1.0] * 4, edges, size=[3.0, 1.0, 1.0, 3.0]), 4, 5.0) == [0, 1]


def test_of_equal_clusters_the_longest_at_the_end() -> None:
    """Without edges every choice costs nothing: the last two, then the first two."""
    assert begin_places(tasks_by_hand([1.0] * 4, {}), 3) == [0, 1]


def test_tasks_count_with_their_group() -> None:
    """Tasks 0 and 3 share a device: {0 1} ties 3 + 3 + 2 to it, {1 2} takes only 2 + 2, {1 2 3} all.

    Within 8, {0 1} {2 3} costs 1 as {0} {1 2} {3} does, and its last cluster is longer.
    """
    tasks = tasks_by_hand(
        [1.0] * 4, {(0, 1): 1.0, (1, 2): 1.0}, size=[3.0, 2.0, 2.0, 3.0], group=[0, 1, 2, 0]
    )
    assert begin_places(tasks, 4, 7.0) == [0, 1, 3]
    assert begin_places(tasks, 4, 8.0) == [0, 2]
    assert begin_places(tasks, 4, 10.0) == [0]


def best_of_all(tasks: Tasks, order: Ints, most: int, memory: float) -> list[int]:
    """The cheapest of all choices; among equals the one whose last cluster is longest, and so on."""
    choices = []
    for inner in product([False, True], repeat=tasks.n - 1):
        begins = np.array([True, *inner])
        cluster = np.empty(tasks.n, dtype=np.int64)
        cluster[order] = np.cumsum(begins) - 1
        if all(allowed(tasks, np.flatnonzero(cluster == c), most, memory) for c in range(cluster.max() + 1)):
            cut = cluster[tasks.before.items] != cluster[tasks.before.owners()]
            cost = mean_transfer(tasks)[tasks.before_tensor][cut].sum()
            choices.append((round(float(cost), 9), np.flatnonzero(begins).tolist()[::-1]))
    return min(choices)[1][::-1]


def allowed(tasks: Tasks, members: Ints, most: int, memory: float) -> bool:
    groups = np.unique(tasks.group[members])
    held = tasks.size[np.isin(tasks.group, groups)].sum()
    somewhere = np.isfinite(tasks.time[:, np.isin(tasks.group, groups)]).all(axis=1).any()
    return bool(len(members) <= most and (len(groups) == 1 or (held <= memory and somewhere)))


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 60), *(pytest.param(first, 200, marks=pytest.mark.slow) for first in range(0, 2000, 200))],
)
def test_the_best_of_all_choices(first: int, count: int) -> None:
    whole = tight = 0
    for seed, tasks in some_tasks(first, count, most=7):
        rng = np.random.default_rng(seed)
        most = int(rng.integers(1, tasks.n + 2))
        memory = float(rng.choice([np.inf, float(rng.integers(0, 12))]))
        order = cpd_topo(tasks)
        found = np.flatnonzero(breakpoints(tasks, order, most, memory)).tolist()
        assert found == best_of_all(tasks, order, most, memory), seed
        whole += found == [0]
        tight += found != np.flatnonzero(breakpoints(tasks, order, most, np.inf)).tolist()
    assert whole < count * 3 / 4 and tight > count / 10, (whole, tight)
