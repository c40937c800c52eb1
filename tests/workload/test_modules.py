"""Modules are whole layers in forward order; what they must share a device with follows from the graph."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from partitioner import Graph
from partitioner.workload.constraints import WHOLE
from partitioner.workload.graph import Extras
from partitioner.workload.module_groups import of_inputs, shared_parameters, whole_groups
from partitioner.workload.modules import modules_of, repeated_block, split_number


def random_graph(seed: int) -> Graph:
    """A graph with layers, colours and backward nodes, some without any of these; ids in random order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    place = rng.permutation(n)
    edges = [(int(place[i]), int(place[j])) for j in range(n) for i in range(j) if rng.random() < 0.3]
    late = rng.integers(1, n + 1)
    return Graph.from_arrays(
        {"gpu": [1.0] * n},
        edges,
        ids=list(range(n)),
        backward=[bool(np.argsort(place)[i] >= late) for i in range(n)],
        color=[int(k) if k >= 0 else None for k in rng.integers(-2, 4, n)],
        layer=[f"m{k}" if k >= 0 else None for k in rng.integers(-2, 3, n)],
        parameters=(rng.random(n) < 0.5).astype(float),
    )


def test_layers_titles_and_colours_make_modules() -> None:
    for seed in range(200):
        graph = random_graph(seed)
        found = modules_of(graph)
        forward = np.flatnonzero(~graph.backward).tolist()
        assert len(found.names) == len({(graph.layer[i], -1 if graph.layer[i] >= 0 else i) for i in forward})
        for i in range(len(graph)):
            if graph.layer[i] >= 0 and str(graph.layer_labels[graph.layer[i]]) in found.names:
                assert found.names[found.of[i]] == graph.layer_labels[graph.layer[i]]
            elif not graph.backward[i]:
                assert found.names[found.of[i]] == graph.names[i]


def test_modules_stand_in_forward_order() -> None:
    """Where no layer encloses another one, no edge of the forward pass leads to an earlier module."""
    ordered = 0
    for seed in range(200):
        graph = random_graph(seed)
        module = modules_of(graph).of
        pairs = {
            (int(module[u]), int(module[v]))
            for u, v in graph.edges.tolist()
            if not graph.backward[u] and not graph.backward[v] and module[u] != module[v]
        }
        if nx.is_directed_acyclic_graph(nx.DiGraph(list(pairs))):
            assert all(one < other for one, other in pairs)
            ordered += len(pairs) > 1
    assert ordered > 30


def test_what_no_edge_orders_stands_as_in_the_file() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(3, 1)], names=["c", "b", "a", "z"])
    assert modules_of(graph).names == ("c", "a", "z", "b")


def test_an_orphan_belongs_to_what_it_reads_or_else_to_what_reads_it() -> None:
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 5},
        [(0, 2), (2, 3), (4, 1)],
        backward=[False, False, True, True, False],
        names="abcde",
    )
    assert modules_of(graph).of.tolist() == [0, 2, 0, 0, 1]
    alone = Graph.from_arrays({"gpu": [1.0] * 3}, [(1, 2)], backward=[False, True, True])
    assert modules_of(alone).of.tolist() == [0, -1, -1]
    read = Graph.from_arrays(
        {"gpu": [1.0] * 3}, [(1, 2)], backward=[False, True, True], color=[7, None, 7], names="abc"
    )
    assert modules_of(read).of.tolist() == [0, 0, 0]


def test_a_graph_of_backward_nodes_has_no_modules() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)], backward=True)
    assert modules_of(graph).names == () and modules_of(graph).of.tolist() == [-1, -1]


def test_inputs_by_their_ancestors() -> None:
    known = 0
    for seed in range(200):
        graph = random_graph(seed)
        whole: nx.DiGraph[int] = nx.DiGraph()
        whole.add_nodes_from(range(len(graph)))
        whole.add_edges_from(graph.edges.tolist())
        bare = (graph.parts[0] == 0) & ~graph.backward
        expected = [bool(bare[list({i} | nx.ancestors(whole, i))].all()) for i in range(len(graph))]
        if not graph.parts[0].any():
            expected = [False] * len(graph)
        assert of_inputs(graph).tolist() == expected
        known += any(expected)
    assert known > 50


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ([{"sharedParameters": ["w", "b"]}, {}, {"sharedParameters": ["w"]}], {"w": [0, 2]}),
        ([{"sharedParameters": ["w"]}, {}, {}], {}),
        ([{"sharedParameters": "w"}, {"sharedParameters": 3}, {}], {}),
        ([], {}),
    ],
)
def test_shared_parameters(extra: list[dict[str, Any]], found: dict[str, list[int]]) -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 3}, extras=Extras(nodes=extra))
    assert {name: nodes.tolist() for name, nodes in shared_parameters(graph).items()} == found


@pytest.mark.parametrize(
    ("names", "block"),
    [
        ((), range(0)),
        (("a", "b"), range(0)),
        (("a", "l.0", "l.1", "b"), range(1, 3)),
        (("l.0", "x", "l.1"), range(3)),
        (("conv1", "l.0.mlp", "l.1.mlp", "fc2"), range(1, 3)),
        (("0", "1", "2"), range(3)),
    ],
)
def test_the_repeated_block(names: tuple[str, ...], block: range) -> None:
    assert repeated_block(names) == block


@pytest.mark.parametrize(
    ("name", "parts"),
    [("a", ("a", None, "")), ("l.07", ("l.", 7, "")), ("1a2b", ("1a", 2, "b")), ("", ("", None, ""))],
)
def test_the_last_number_of_a_name(name: str, parts: tuple[str, int | None, str]) -> None:
    assert split_number(name) == parts


def test_groups_that_must_be_whole() -> None:
    layer = ["tokens", "positions", "l.0", "l.0", "l.1", "norm", "head"]
    extra = [{"sharedParameters": ["w"]} if i in (0, 6) else {} for i in range(7)]
    graph = Graph.from_arrays({"gpu": [1.0] * 7}, layer=layer, extras=Extras(nodes=extra))
    found = {what: [nodes.tolist() for nodes in whole_groups(graph, (what,))] for what in WHOLE}
    assert found == {
        "modules": [[2, 3]],
        "ends": [[0, 1], [5, 6]],
        "ties": [[0, 6]],
        "layer_ties": [],
        "training_ties": [],
    }
    inner = [{"sharedParameters": ["w"]} if i in (2, 4) else {} for i in range(7)]
    tied = Graph.from_arrays({"gpu": [1.0] * 7}, layer=layer, extras=Extras(nodes=inner))
    assert [nodes.tolist() for nodes in whole_groups(tied, ("layer_ties",))] == [[2, 4]]
    assert whole_groups(graph, ()) == []
    plain = Graph.from_arrays({"gpu": [1.0] * 2}, names=["a", "b"])
    assert whole_groups(plain, ("modules", "ends", "ties")) == []
