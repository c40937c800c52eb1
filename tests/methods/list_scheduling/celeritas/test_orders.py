"""DFS-TOPO and CPD-TOPO are the paper's queues, on examples by hand and against the queues themselves."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from partitioner.methods.list_scheduling.celeritas.orders import cpd_topo, critical_path, dfs_topo
from partitioner.methods.list_scheduling.ranks import mean_time, mean_transfer
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.tasks import Tasks
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many
from tests.methods.list_scheduling.small_tasks import some_tasks


def queue_order(tasks: Tasks, urgency: Floats) -> list[int]:
    """Algorithm 1, CPD_Topo, line by line."""
    edges = nx.DiGraph(zip(tasks.before.items.tolist(), tasks.before.owners().tolist(), strict=True))
    edges.add_nodes_from(range(tasks.n))
    queue = deque(sorted((v for v in edges if not edges.in_degree(v)), key=lambda v: (-urgency[v], v)))
    order = []
    while queue:
        current = queue.popleft()
        order.append(current)
        children = sorted(edges.successors(current), key=lambda v: (urgency[v], -v))
        edges.remove_node(current)
        for child in children:
            if not edges.in_degree(child):
                queue.appendleft(child)
    return order


def cut_edges(tasks: Tasks, order: list[int], each: int) -> int:
    """How many edges are cut when each device takes the next `each` tasks."""
    device = np.argsort(order) // each
    return int((device[tasks.before.items] != device[tasks.before.owners()]).sum())


def test_depth_first_cuts_nothing_where_first_in_first_out_cuts_all() -> None:
    """Figure 3's point: four pairs, listed producers first, on two devices of four tasks."""
    tasks = tasks_by_hand([1.0] * 8, {(v, v + 4): 1.0 for v in range(4)})
    assert dfs_topo(tasks).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert cut_edges(tasks, dfs_topo(tasks).tolist(), 4) == 0
    assert cut_edges(tasks, [0, 1, 2, 3, 4, 5, 6, 7], 4) == 4


def test_the_longest_path_comes_first() -> None:
    """By hand.

    tlevel: 0, 1 + 1 = 2, 1 + 5 = 6, 0, and of the last max(2 + 2 + 1, 6 + 3 + 1, 9) = 10.
    blevel: 1 + max(1 + 4, 5 + 5) = 11, 2 + 1 + 1 = 4, 3 + 1 + 1 = 5, 9 + 0 + 1 = 10, and 1.
    """
    edges = {(0, 1): 1.0, (0, 2): 5.0, (1, 4): 1.0, (2, 4): 1.0, (3, 4): 0.0}
    tasks = tasks_by_hand([1.0, 2.0, 3.0, 9.0, 1.0], edges)
    assert critical_path(tasks).tolist() == [11.0, 6.0, 11.0, 10.0, 11.0]
    assert cpd_topo(tasks).tolist() == [0, 2, 1, 3, 4]
    assert dfs_topo(tasks).tolist() == [0, 1, 2, 3, 4]


def test_the_queue_starts_with_the_longest_path() -> None:
    tasks = tasks_by_hand([1.0, 3.0, 1.0, 1.0], {(0, 2): 0.0, (1, 3): 0.0})
    assert cpd_topo(tasks).tolist() == [1, 3, 0, 2]


@few_and_many(1)
@pytest.mark.parametrize("name", ["dfs", "cpd"])
def test_equal_to_the_queue(name: str, first: int, count: int) -> None:
    different = 0
    for seed, tasks in drawn(first, count):
        urgency = critical_path(tasks) if name == "cpd" else np.zeros(tasks.n)
        order: Ints = cpd_topo(tasks) if name == "cpd" else dfs_topo(tasks)
        assert order.tolist() == queue_order(tasks, urgency), seed
        different += order.tolist() != list(range(tasks.n))
    assert different > count * 2 / 5, different


def test_critical_paths_are_the_longest_of_all_paths() -> None:
    for seed, tasks in some_tasks(5000, 150, most=8):
        time, transfer = mean_time(tasks), mean_transfer(tasks)
        edges: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        edges.add_nodes_from(range(tasks.n))
        for u, v, tensor in zip(
            tasks.before.items.tolist(), tasks.before.owners().tolist(), tasks.before_tensor, strict=True
        ):
            edges.add_edge(u, v, cost=transfer[tensor])
        longest = np.zeros(tasks.n)
        for path in _all_paths(edges):
            steps = pairwise(path)
            along = sum(max(e["cost"] for e in edges[u][v].values()) for u, v in steps)
            longest[path] = np.maximum(longest[path], time[path].sum() + along)
        assert critical_path(tasks) == pytest.approx(longest), seed


def _all_paths(edges: nx.MultiDiGraph[int]) -> list[list[int]]:
    """Every path from an entry to an exit."""
    paths, open_paths = [], [[v] for v in edges if not edges.in_degree(v)]
    while open_paths:
        path = open_paths.pop()
        onward = list(set(edges.successors(path[-1])))
        open_paths += [[*path, v] for v in onward]
        paths += [path] if not onward else []
    return paths
