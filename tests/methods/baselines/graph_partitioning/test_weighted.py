"""The graph for partitioners is symmetric, its weights are in proportion, a tensor counts once a reader."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from partitioner import Transfers
from partitioner.methods.baselines.graph_partitioning.weighted import (
    TOTAL,
    Weighted,
    of_nets,
    of_tasks,
    weighted,
)
from partitioner.problem.contract import Goal, contract
from partitioner.problem.measure import Measure
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.random_problems import cases
from tests.random_workloads import fitted, in_known_order

Costs = dict[tuple[int, int], float]


def costs_of(graph: Weighted) -> dict[tuple[int, int], int]:
    owner = np.repeat(np.arange(graph.n), np.diff(graph.start)).tolist()
    return dict(zip(zip(owner, graph.neighbour.tolist(), strict=True), graph.cost.tolist(), strict=True))


def assert_in_proportion(found: Weighted, expected: Costs) -> None:
    """Each pair has its share of the costs, which add up to TOTAL, whole numbers and at least 1."""
    costs, total = costs_of(found), sum(expected.values())
    assert {pair for pair in costs if pair[0] < pair[1]} == set(expected)
    for (u, v), cost in costs.items():
        assert cost == costs[v, u] >= 1
        assert cost == pytest.approx(expected[min(u, v), max(u, v)] / total * TOTAL, abs=1.0)


def tensors_between(edges: list[tuple[int, int, float]], place: list[int]) -> Costs:
    """What edges between places cost if all edges of a node with one cost are one tensor."""
    outgoing = defaultdict(list)
    for u, v, cost in edges:
        outgoing[u].append((v, cost))
    found: Costs = defaultdict(float)
    for u, out in outgoing.items():
        shared = len({cost for _, cost in out}) == 1
        readers = [(place[v], cost) for v, cost in out]
        for p, cost in dict(readers).items() if shared else readers:
            if p != place[u] and cost > 0:
                found[min(p, place[u]), max(p, place[u])] += cost
    return found


def test_a_tensor_counts_once_for_each_reader() -> None:
    compared = 0
    for case in cases(91_000, 60):
        devices = replace(case.devices, communication="duplex", levels=())
        problem = contract(fitted(case.graph, devices), devices, Goal(Measure.LARGEST_LOAD, "free"))
        edges = [(u, v, c) for (u, v), c in zip(case.graph.edges.tolist(), case.graph.cost, strict=True)]
        expected = tensors_between(edges, problem.member.tolist())
        assert_in_proportion(of_nets(np.ones(problem.n), problem.nets), expected)
        compared += bool(expected)
    assert compared > 20


def test_tasks_of_a_group_are_one_vertex() -> None:
    compared = 0
    for case in cases(92_000, 60):
        goal = Goal(Measure.LAST_OPERATOR, "free", transfers=Transfers(slope=1.0))
        graph = in_known_order(case.graph)
        tasks = contract_to(OperatorNodes, fitted(graph, case.devices), case.devices, goal).tasks
        group = tasks.group[np.argsort(tasks.node)].tolist()
        edges = [(u, v, c) for (u, v), c in zip(graph.edges.tolist(), graph.cost, strict=True)]
        expected = tensors_between(edges, group)
        if len(tasks.limit) > 1:
            assert_in_proportion(of_tasks(np.ones(len(tasks.group_size)), tasks), expected)
            compared += bool(expected)
    assert compared > 10


def test_work_is_in_proportion() -> None:
    graph = weighted(np.array([1.0, 2.0, 5.0]), np.zeros((0, 2), dtype=np.int64), np.zeros(0))
    assert graph.weight.tolist() == [TOTAL // 8, TOTAL // 4, TOTAL // 8 * 5]
    idle = weighted(np.zeros(2), np.array([[0, 1]]), np.array([1e-300]))
    assert idle.weight.tolist() == [1, 1] and idle.cost.min() >= 1


def test_renumbering_keeps_the_graph() -> None:
    rng = np.random.default_rng(0)
    graph = weighted(rng.random(20), rng.integers(20, size=(60, 2)), rng.random(60))
    order = rng.permutation(20)
    other = graph.renumbered(order)
    back = costs_of(other)
    assert other.weight.tolist() == graph.weight[order].tolist()
    assert {(int(order[u]), int(order[v])): cost for (u, v), cost in back.items()} == costs_of(graph)
