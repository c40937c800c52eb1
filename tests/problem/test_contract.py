"""The contraction keeps what must stay together, orders what must be ordered, and merges what it may."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph, OptionError
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.layers import whole_layers
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Region
from partitioner.problem.variants import ChainProblem, PartsProblem
from tests.contracted import contract_to

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
    problem = contract_to(ChainProblem, Graph.from_arrays(times, [(0, 1), (1, 2), (2, 3)], 1.0), TWO)
    assert parts(problem.member) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}
    assert problem.coarser is None


def test_free_nodes_with_size_wait_where_memory_may_bind() -> None:
    """With memory that may bind, a free node with size stays apart; the coarser problem merges it."""
    times = {"accelerator": [0.0, 1.0, 1.0]}
    tight = Devices.accelerated(2, memory=3.0)
    heavy = Graph.from_arrays(times, [(0, 1), (1, 2)], 1.0, size=[1.0, 2.0, 2.0])
    problem = contract_to(ChainProblem, heavy, tight)
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
    assert parts(contract(chain, TWO, Goal(classes=(layer,))).member) == {
        frozenset({0}),
        frozenset({1, 2, 3}),
        frozenset({4}),
    }


def test_a_graph_without_layers_says_so() -> None:
    """Layer granularity on a graph that gives no layers is an error, not operator granularity."""
    with pytest.raises(OptionError, match="gives no node a layer"):
        whole_layers(graph(2, []))


def test_only_chains_merge_cycles_and_have_an_order() -> None:
    """A free or convex split may take apart what a chain cannot, and carries the chain's problem along."""
    woven = graph(4, [(0, 1), (2, 3)], color=["x", "y", "y", "x"])
    assert contract(woven, TWO).n == 1
    for split in ("convex", "free"):
        problem = contract_to(PartsProblem, woven, TWO, Goal(split=split))
        assert problem.n == 2
        assert len(problem.successors.items) == len(problem.predecessors.items) == 0
        assert problem.chain.n == 1


def test_supernodes_are_numbered_along_the_chain() -> None:
    """Neighbours in the order of the chain are neighbours in number, however the nodes are listed."""
    path = graph(6, [(3, 0), (0, 5), (5, 1), (1, 4), (4, 2)])
    for split in ("chain", "convex", "free"):
        member = contract(path, TWO, Goal(split=split)).member
        assert member[[3, 0, 5, 1, 4, 2]].tolist() == list(range(6))


def test_regions_are_there_for_convex_splits() -> None:
    """One region of forward nodes, on request another of backward nodes; none for other splits."""
    both = graph(5, [(0, 1), (1, 2), (2, 3), (3, 4)], backward=[False, False, False, True, True])

    def regions_of(goal: Goal) -> tuple[Region, ...]:
        return contract_to(PartsProblem, both, TWO, goal).regions

    regions = regions_of(Goal(split="convex", contiguous_backward=True))
    assert [len(region.owner) for region in regions] == [3, 2]
    assert [len(region.edges) for region in regions] == [2, 1]
    assert len(regions_of(Goal(split="convex"))) == 1
    assert regions_of(Goal(split="free")) == ()


def test_which_kinds_must_be_contiguous() -> None:
    """All by default; without `contiguous_cpus` those that pay for transfers; none unless it is convex."""
    lone = Graph.from_arrays({"accelerator": [1.0], "cpu": [1.0]})
    devices = Devices.accelerated(1, cpus=1)
    for goal, contiguous in (
        (Goal(split="convex"), [True, True]),
        (Goal(split="convex", contiguous_cpus=False), [True, False]),
        (Goal(split="free"), [False, False]),
    ):
        assert contract_to(PartsProblem, lone, devices, goal).contiguous.tolist() == contiguous


def test_nets_tell_the_passes_apart_for_gpipe_only() -> None:
    """Node 0 feeds 1 forward and 2 backward; 2 and 3 share a supernode, 3 feeds 4 backward."""
    edges = [(0, 1), (0, 2), (3, 4)]
    user = graph(5, edges, backward=[False, False, True, True, True], color=[None, None, "b", "b", None])
    problem = contract(user, TWO, Goal(Measure.LARGEST_LOAD_BY_PASS, "free"))
    member, nets = problem.member, problem.nets
    first, second = np.argsort(nets.source != member[0])
    assert (nets.made[first], nets.made[second]) == (0, 1)
    read = dict(
        zip(nets.pins.row(first).tolist(), nets.read[nets.pins.owners() == first].tolist(), strict=True)
    )
    assert (read[member[1]], read[member[2]]) == (0, 1)
    plain = contract(user, TWO, Goal(split="free")).nets
    assert not plain.made.any() and not plain.read.any()
