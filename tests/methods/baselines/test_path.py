"""The PipeDream baseline finds the best chain among those that keep every branching on one device.

Nodes on a common cycle, directions aside, share a block; tensors of side layers close no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Plan,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.methods.baselines.path import branchings
from partitioner.problem.arrays import Ints, rows_of
from tests.branchings import (
    Edges,
    blocks_by_definition,
    random_edges,
    series_parallel_edges,
    two_terminal_edges,
)
from tests.oracle import best_chain_value
from tests.random_workloads import random_workload


def blocks_of(n: int, edges: Edges, idle: set[int] | frozenset[int] = frozenset()) -> Ints:
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return branchings(rows_of(source, target, n), np.isin(np.arange(n), list(idle)))


def test_blocks_are_those_of_the_definition() -> None:
    """On random graphs; then what feeds one another is one block, and numbers rise along every edge."""
    several = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        edges = random_edges(rng, n)
        idle = {v for v in range(n) if rng.random() < 0.4}
        block = blocks_of(n, edges, idle)
        together = blocks_by_definition(n, edges, idle)
        graph = nx.DiGraph([(together[u], together[v]) for u, v in edges])
        graph.add_nodes_from(together)
        parts = [{v for v in range(n) if together[v] in c} for c in nx.strongly_connected_components(graph)]
        assert {frozenset(part) for part in parts} == {
            frozenset(np.flatnonzero(block == b).tolist()) for b in range(int(block.max()) + 1)
        }, seed
        assert all(block[u] <= block[v] for u, v in edges), seed
        several += 1 < len(parts) < n
    assert several > 50


@pytest.mark.parametrize("idle", [{0}, {0, 5}])
def test_a_mask_that_all_layers_read_is_no_branching(idle: set[int]) -> None:
    """Node 0 feeds every layer of 1 -> 2 -> 3 -> 4: one block if it takes time, else a path."""
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert blocks_of(6, edges, idle).tolist() == [0, 1, 2, 3, 4, 5]
    assert blocks_of(6, edges).tolist() == [0, 0, 0, 0, 1, 2]


def test_a_context_that_all_layers_read_is_no_branching() -> None:
    """Node 1 hands on what 0 made to 3 and 4, which read one another's results too."""
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 4)]
    assert len(set(blocks_of(5, edges, {1}).tolist())) == 5
    assert blocks_of(5, edges).tolist() == [0, 0, 0, 0, 1]


def test_a_sum_that_goes_on_in_two_ways_is_a_branching() -> None:
    """Node 1 takes no time, but 2 reads nothing else: a residual connection stays whole."""
    edges = [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4)]
    assert blocks_of(5, edges, {1, 3}).tolist() == [0, 1, 1, 2, 3]


def test_two_contexts_do_not_excuse_one_another() -> None:
    """Nodes 1 and 2, both without time, feed 3 and 4, which read nothing else: a branching."""
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4)]
    assert len(set(blocks_of(5, edges, {1, 2})[:3].tolist())) == 1


def test_what_feeds_one_another_is_one_block() -> None:
    """The mask 2 is computed inside the branching of 0, 1 and 3, and read there: it cannot leave it."""
    edges = [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (0, 4)]
    assert blocks_of(5, edges, {2}).tolist() == [0, 0, 0, 0, 1]


def solved(graph: Graph, devices: Devices) -> Plan | None:
    """The plan of the baseline, None if it finds none; the evaluator agrees with it."""
    try:
        plan = solve(graph, devices, method="pipedream_path")
    except (NoPlanFound, InfeasibleError):
        return None
    evaluation = evaluate(graph, devices, plan.placement)
    assert evaluation.feasible and evaluation.shape.name == "chain"
    assert evaluation.value == plan.value >= plan.bound
    return plan


def random_graph(rng: np.random.Generator, n: int, edges: Edges, idle: float = 0.0) -> Graph:
    """Random times, sizes up to 3 and costs; nodes with two neighbours may take no time."""
    time = rng.integers(1, 8, n).astype(float)
    degree = np.bincount(np.array(edges, dtype=np.int64).ravel(), minlength=n)
    time[(rng.random(n) < idle) & (degree > 1)] = 0.0
    cost = rng.choice([0.0, 0.25, 1.0, 3.0], n)
    return Graph.from_arrays(
        {"gpu": time, "cpu": 3 * time},
        edges,
        [float(cost[u]) for u, _ in edges],
        size=rng.integers(0, 4, n).astype(float),
    )


def random_devices(rng: np.random.Generator, graph: Graph) -> Devices:
    """One to three accelerators, often with little memory, and now and then a CPU."""
    share = float(rng.choice([0.5, 0.8, 1.0]))
    gpu = DeviceKind("gpu", int(rng.integers(1, 4)), memory=max(3.0, share * float(graph.size.sum())))
    return Devices((gpu, DeviceKind("cpu", int(rng.integers(2)), pays_communication=False)))


def whole_branchings(graph: Graph) -> Graph:
    """The graph with its branchings, by their definition, as colour classes."""
    idle = np.flatnonzero(graph.time.sum(axis=0) == 0).tolist()
    edges = [(u, v) for u, v in graph.edges.tolist()]
    time = dict(zip(graph.kinds, graph.time, strict=True))
    color = blocks_by_definition(len(graph), edges, idle)
    return Graph.from_arrays(time, edges, graph.cost, size=graph.size, color=color)


def cuts_of_all_paths(graph: Graph, devices: Devices) -> Iterator[dict[int | str, str]]:
    """Every placement of stages that begin at points through which all paths pass."""
    last = len(graph) - 1
    paths = [set(path) for path in nx.all_simple_paths(nx.DiGraph(graph.edges.tolist()), 0, last)]
    points = sorted(set.intersection(*paths) - {0})
    for count in range(len(devices.names)):
        for cuts in combinations(points, count):
            for names in permutations(devices.names, count + 1):
                yield {v: names[sum(cut <= v for cut in cuts)] for v in range(last + 1)}


@pytest.mark.parametrize(("first", "count"), [(0, 8), pytest.param(8, 32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("edges_of", [series_parallel_edges, two_terminal_edges])
def test_between_two_ends_it_cuts_where_every_path_passes(
    edges_of: Callable[[np.random.Generator, int], Edges], first: int, count: int
) -> None:
    """On graphs with one source and one sink: the best of all stages between such points."""
    feasible = cut = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 10))
        graph = random_graph(rng, n, edges_of(rng, n))
        devices = random_devices(rng, graph)
        found = [evaluate(graph, devices, placed) for placed in cuts_of_all_paths(graph, devices)]
        best = min((each.value for each in found if each.feasible), default=None)
        plan = solved(graph, devices)
        assert (plan is None) == (best is None), seed
        if plan is not None:
            assert plan.value == pytest.approx(best), seed
            feasible += 1
            cut += len(plan.stages) > 1
    assert feasible > count * 3 / 8 and cut > count / 8


@pytest.mark.parametrize(("first", "count"), [(1000, 20), pytest.param(1020, 100, marks=pytest.mark.slow)])
def test_it_is_the_best_chain_that_tears_no_branching(first: int, count: int) -> None:
    """On any graphs: the optimum of the graph whose branchings, by their definition, are colour classes."""
    feasible = dearer = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        graph = random_graph(rng, n, random_edges(rng, n), idle=0.4)
        devices = random_devices(rng, graph)
        best = best_chain_value(whole_branchings(graph), devices)
        plan = solved(graph, devices)
        assert (plan is None) == (best is None), seed
        if plan is not None and best is not None:
            assert plan.value == pytest.approx(best), seed
            feasible += 1
            dearer += plan.value > solve(graph, devices, method="dp").value * (1 + 1e-9)
    assert feasible > count * 5 / 12 and dearer > count / 24


@pytest.mark.parametrize(("first", "count"), [(0, 12), pytest.param(12, 38, marks=pytest.mark.slow)])
def test_on_a_path_it_is_the_exact_program(first: int, count: int) -> None:
    """A path has nothing to contract, so both find the same value."""
    plans = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 30))
        graph = random_graph(rng, n, [(v, v + 1) for v in range(n - 1)], idle=0.3)
        devices = random_devices(rng, graph)
        plan = solved(graph, devices)
        if plan is not None:
            plans += 1
            assert plan.value == pytest.approx(solve(graph, devices, method="dp").value), seed
        else:
            with pytest.raises((InfeasibleError, NoPlanFound)):
                solve(graph, devices, method="dp")
    assert plans > count * 2 / 5


@pytest.mark.parametrize(
    ("first", "count"), [(70_000, 20), pytest.param(70_020, 100, marks=pytest.mark.slow)]
)
def test_it_is_never_better_than_the_optimum(first: int, count: int) -> None:
    """With every feature of the model; nor is the bound above it, and where it says optimal, it is."""
    plans = optimal = 0
    for seed in range(first, first + count):
        graph, devices = random_workload(np.random.default_rng(seed), 10, 3)
        try:
            best = solve(graph, devices, method="dp")
        except (WorkloadError, InfeasibleError):
            continue
        plan = solved(graph, devices)
        if plan is not None:
            plans += 1
            assert plan.bound <= best.value * (1 + 1e-9) <= plan.value * (1 + 2e-9)
            if plan.status == "optimal":
                optimal += 1
                assert plan.value == pytest.approx(best.value)
    assert plans > count / 4 and optimal > count / 24
