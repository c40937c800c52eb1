"""The problem of latency holds every node by itself, in an order in which they could run."""

from __future__ import annotations

import numpy as np

from partitioner import Devices, Graph
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.random_workloads import random_workload

GOAL = Goal(Measure.ONE_SAMPLE, "convex", subgraphs=2)


def problems(count: int) -> list[tuple[Graph, Devices, SampleProblem]]:
    rng = np.random.default_rng(4)
    workloads = [random_workload(rng, 9) for _ in range(count)]
    return [
        (graph, devices, contract_to(SampleProblem, graph, devices, GOAL)) for graph, devices in workloads
    ]


def test_edges_lead_on_and_are_all_there() -> None:
    for graph, _, problem in problems(100):
        edges = {(int(problem.member[u]), int(problem.member[v])) for u, v in graph.edges}
        assert all(u < v for u, v in edges)
        after = problem.successors
        assert set(zip(after.owners().tolist(), after.items.tolist(), strict=True)) == edges
        before = problem.predecessors
        assert {(u, v) for v, u in zip(before.owners().tolist(), before.items.tolist(), strict=True)} == edges


def test_every_node_keeps_what_it_is() -> None:
    """Size, pass, and for each present kind its time where it may run."""
    for graph, devices, problem in problems(100):
        at = problem.member
        assert np.array_equal(problem.size[at], graph.size)
        assert np.array_equal(problem.backward[at], graph.backward)
        assert problem.subgraphs == 2
        for k, kind in enumerate(devices.kinds):
            row = graph.kinds.index(kind.name)
            allowed = graph.allowed[row] & (kind.count > 0)
            assert np.array_equal(problem.allowed[k, at], allowed)
            assert np.array_equal(problem.time[k].sum(axis=0)[at], np.where(allowed, graph.time[row], 0.0))
            assert (problem.time[k, 0, at][graph.backward] == 0).all()


def test_groups_are_the_colour_classes() -> None:
    for graph, _, problem in problems(100):
        group = problem.group[problem.member]
        for i in range(len(graph)):
            same = (graph.color == graph.color[i]) & (graph.color[i] >= 0)
            same[i] = True
            assert np.array_equal(group == group[i], same)


def test_the_chain_comes_with_it() -> None:
    """What the dynamic program walks over is the contraction for chains."""
    for graph, devices, problem in problems(20):
        assert problem.chain.n == contract(graph, devices).n
