"""Fused clusters: never in a circle, united groups within memory, members in a row of CPD-TOPO.

Kernighan's breakpoints: worked by hand, and the best of all choices on small graphs.
"""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from partitioner.methods.list_scheduling.celeritas.fusion import breakpoints, ccr, fused, untied
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.coarse import merged
from partitioner.methods.list_scheduling.ranks import mean_transfer
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many
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


def check(tasks: Tasks, cluster: Ints, most: int, memory: float) -> int:
    """Whether the clusters keep their rules; how many unite several groups."""
    assert np.bincount(cluster).min() > 0 and np.bincount(cluster).max() <= most
    quotient = nx.DiGraph(
        zip(cluster[tasks.before.items].tolist(), cluster[tasks.before.owners()].tolist(), strict=True)
    )
    quotient.remove_edges_from(list(nx.selfloop_edges(quotient)))
    assert nx.is_directed_acyclic_graph(quotient)
    assert (np.diff(cluster[cpd_topo(tasks)]) >= 0).all()
    bonds = nx.Graph(zip(cluster.tolist(), (-1 - tasks.group).tolist(), strict=True))
    several = 0
    for united in nx.connected_components(bonds):
        groups = [-1 - g for g in united if g < 0]
        members = np.isin(tasks.group, groups)
        if len(groups) > 1:
            several += 1
            assert tasks.size[members].sum() <= memory
            assert np.isfinite(tasks.time[:, members]).all(axis=1).any()
    return several


@few_and_many(*range(8))
def test_clusters_keep_their_rules(first: int, count: int) -> None:
    united = 0
    for seed, tasks in drawn(first, count):
        rng = np.random.default_rng(seed)
        most, fraction = int(rng.integers(1, 9)), float(rng.choice([0.1, 0.25, 0.5, 1.0]))
        memory = fraction * min(tasks.limit.min(), tasks.size.sum())
        united += check(tasks, fused(tasks, most, fraction), most, memory)
    assert united > count / 2, united


@few_and_many(2)
def test_without_colour_classes_no_breakpoint_is_added(first: int, count: int) -> None:
    cut = 0
    for seed, tasks in drawn(first, count):
        order = cpd_topo(tasks)
        memory = float(np.random.default_rng(seed).integers(0, 12))
        begins = breakpoints(tasks, order, 5, memory)
        added = untied(tasks, order, begins, memory) & ~begins
        if len(tasks.group_size) == tasks.n:
            assert not added.any(), seed
        cut += int(added.any())
    assert cut > count / 25, cut


def test_groups_tied_in_a_row_are_cut() -> None:
    """Clusters {0 1} {2 3} of groups a b, b c tie sizes 2 + 4 + 2 to one device; with 7 the second is cut."""
    tasks = tasks_by_hand([1.0] * 4, {}, size=2.0, group=[0, 1, 1, 2])
    begins = np.array([True, False, True, False])
    order = np.arange(4)
    assert untied(tasks, order, begins, 8.0).tolist() == [True, False, True, False]
    assert untied(tasks, order, begins, 7.0).tolist() == [True, False, True, True]
    assert untied(tasks, order, begins, 5.0).tolist() == [True, True, True, True]


def test_a_large_graph_without_limits_is_not_one_cluster() -> None:
    """A quarter of all memory is the most of a cluster, also where every device would hold everything."""
    tasks = tasks_by_hand([1.0] * 8, {(v, v + 1): 1.0 for v in range(7)}, size=1.0)
    assert fused(tasks, 200, 0.25).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_ratio_of_communication_to_computing() -> None:
    """Before: edges 5 + 1 + 4 over times 2 + 3; with the first two fused only 1 + 4 is left."""
    tasks = tasks_by_hand([1.0, 1.0, 2.0, 1.0], {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0})
    assert ccr(tasks) == 2.0
    assert ccr(merged(tasks, np.array([0, 0, 1, 2]))) == 1.0
    assert ccr(tasks_by_hand([0.0, 0.0], {(0, 1): 5.0})) == 0.0
