"""The contraction keeps what must stay together, orders what must be ordered, and loses nothing."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph, OptionError, Workload, WorkloadError, evaluate
from partitioner.methods.loads import value_of
from partitioner.methods.method import Part
from partitioner.preprocess.contract import Goal, contract
from partitioner.preprocess.layers import whole_layers
from tests.random_workloads import random_workload

TWO = Devices.accelerated(2)


def graph(n: int, edges: list[tuple[int, int]], **fields: object) -> Graph:
    """A graph of n nodes that take one unit of time each."""
    return Graph.from_arrays({"accelerator": np.ones(n)}, edges, 1.0, **fields)  # type: ignore[arg-type]


def parts(member: np.ndarray) -> set[frozenset[int]]:
    """The supernodes as sets of nodes."""
    return {frozenset(np.flatnonzero(member == s).tolist()) for s in np.unique(member)}


def test_colours_are_merged() -> None:
    """Nodes of one colour become one supernode."""
    problem = contract(graph(4, [(0, 1), (2, 3)], color=[7, 7, None, None]), TWO)
    assert parts(problem.member) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}


def test_cycles_of_colours_are_merged() -> None:
    """A path that leaves a colour class and returns pulls its inner nodes in."""
    problem = contract(graph(4, [(0, 1), (1, 2), (2, 3)], color=["c", None, "c", None]), TWO)
    assert parts(problem.member) == {frozenset({0, 1, 2}), frozenset({3})}


def test_orphaned_backward_nodes_are_ordered_in_the_mirror() -> None:
    """Backward nodes 2 -> 3 without partners: 3 comes before 2, as the forward pass would."""
    problem = contract(graph(4, [(0, 1), (1, 2), (2, 3)], backward=[False, False, True, True]), TWO)
    place = problem.member
    assert problem.n == 4
    assert place[3] in problem.predecessors.row(place[2])
    assert place[1] not in problem.predecessors.row(place[2])


def test_backward_edges_between_partners_do_not_order() -> None:
    """Backward nodes with forward partners follow them; their edges add no precedence."""
    backward = [False, False, True, True]
    problem = contract(graph(4, [(0, 1), (2, 3)], backward=backward, color=[0, 1, 0, 1]), TWO)
    assert problem.n == 2
    assert problem.predecessors.row(problem.member[1]).tolist() == [problem.member[0]]
    assert problem.predecessors.row(problem.member[0]).tolist() == []


def test_free_nodes_join_their_neighbour() -> None:
    """A node without time and with one neighbour is merged, one with two is not."""
    times = {"accelerator": [0.0, 1.0, 0.0, 1.0]}
    problem = contract(Graph.from_arrays(times, [(0, 1), (1, 2), (2, 3)], 1.0), TWO)
    assert parts(problem.member) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}
    assert problem.coarser is None


def test_free_nodes_with_size_wait_where_memory_may_bind() -> None:
    """With memory that may bind, a free node with size stays apart; the coarser problem merges it."""
    times = {"accelerator": [0.0, 1.0, 1.0]}
    tight = Devices.accelerated(2, memory=3.0)
    problem = contract(Graph.from_arrays(times, [(0, 1), (1, 2)], 1.0, size=[1.0, 2.0, 2.0]), tight)
    assert problem.n == 3
    assert problem.lossless
    assert problem.coarser is not None
    assert problem.coarser.n == 2
    assert not problem.coarser.lossless
    assert problem.coarser.relaxed_size.sum() == 4.0


def test_isolated_free_nodes_do_not_multiply_the_ideals() -> None:
    """Thirty nodes without time and edges join another one instead of making 2^30 ideals."""
    problem = contract(Graph.from_arrays({"accelerator": [1.0] + [0.0] * 30}), TWO)
    assert problem.n == 1


def test_equal_nets_merge_except_in_the_duplex_model() -> None:
    """Tensors between the same two supernodes add up, unless it matters which one makes them."""
    backward = [False, False, True, True]
    edges = [(0, 1), (3, 2)]
    mixed = graph(4, edges, backward=backward, color=[0, 1, 0, 1])
    assert contract(mixed, TWO).nets.cost.tolist() == [2.0]
    assert contract(mixed, Devices.accelerated(2, communication="duplex")).nets.cost.tolist() == [1.0, 1.0]


def test_different_costs_are_different_tensors() -> None:
    """Edges of one cost share a net, edges of different costs have one each."""
    edges = [(0, 1), (0, 2)]
    times = {"accelerator": np.ones(3)}
    assert len(contract(Graph.from_arrays(times, edges, [1.0, 1.0]), TWO).nets.cost) == 1
    assert len(contract(Graph.from_arrays(times, edges, [1.0, 2.0]), TWO).nets.cost) == 2


def test_layers_stay_together_unless_they_enclose_others() -> None:
    """Layers a, b, none, b, a along a chain: a encloses b, b encloses a node without a layer."""
    chain = graph(5, [(i, i + 1) for i in range(4)], layer=["a", "b", None, "b", "a"])
    layer, notes = whole_layers(chain)
    assert layer.tolist() == [-1, 1, -1, 1, -1]
    assert notes == ("nodes of layers that enclose others stay apart: a",)
    assert parts(contract(chain, TWO, Goal(layer=layer)).member) == {
        frozenset({0}),
        frozenset({1, 2, 3}),
        frozenset({4}),
    }


def test_a_graph_without_layers_says_so() -> None:
    """Layer granularity on a graph that gives no layers is an error, not operator granularity."""
    with pytest.raises(OptionError, match="gives no node a layer"):
        whole_layers(graph(2, []))


def test_loads_are_the_evaluators() -> None:
    """For random chains, the load on the contracted problem is what the evaluator finds."""
    compared = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        user, devices = random_workload(rng, 10, 3)
        try:
            problem = contract(Workload(user, devices).graph, devices)
        except WorkloadError:
            continue
        cuts = np.sort(rng.integers(0, problem.n + 1, 2))
        names = [(k, kind.device(i)) for k, kind in enumerate(devices.kinds) for i in range(kind.count)]
        pieces = [piece for piece in np.split(np.arange(problem.n), cuts) if len(piece)][: len(names)]
        if sum(map(len, pieces)) < problem.n:
            continue
        stages = [Part(k, piece) for (k, _), piece in zip(names, pieces, strict=False)]
        stage = np.concatenate([np.full(len(piece), s) for s, piece in enumerate(pieces)])
        placement = {node: names[stage[problem.member[i]]][1] for i, node in enumerate(user.ids)}
        evaluation = evaluate(user, devices, placement)
        claimed = value_of(problem, stages)
        if np.isfinite(claimed):
            compared += 1
            assert evaluation.value == pytest.approx(claimed, rel=1e-9, abs=1e-12)
            assert evaluation.shape.name == "chain"
            assert not any("may not run" in rule or "torn" in rule for rule in evaluation.violations)
    assert compared > 150
