"""Fused clusters: never in a circle, united groups within memory, members in a row of CPD-TOPO."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.methods.list_scheduling.celeritas.breakpoints import breakpoints
from partitioner.methods.list_scheduling.celeritas.fusion import ccr, fused
from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo
from partitioner.methods.list_scheduling.celeritas.ties import untied
from partitioner.methods.list_scheduling.coarse import merged
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many


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
