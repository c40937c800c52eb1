"""A graph goes to networkx and back without loss; attributes that mean nothing sensible are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    OptionError,
    WorkloadError,
    evaluate,
    from_networkx,
    load,
    solve,
    to_networkx,
)
from tests.instances import SOLVABLE, Instance, chain, document, write


def pair(**attributes: Any) -> nx.DiGraph[Any]:
    """Nodes a -> b; a has the attributes."""
    digraph: nx.DiGraph[Any] = nx.DiGraph([("a", "b")])
    digraph.add_nodes_from("ab", time={"gpu": 1.5})
    digraph.nodes["a"].update(attributes)
    return digraph


def costs(graph: Graph) -> dict[tuple[int, int], float]:
    """The cost of every edge; networkx has its own order of edges."""
    return dict(zip(map(tuple, graph.edges.tolist()), graph.cost.tolist(), strict=True))


@pytest.mark.parametrize("make", SOLVABLE)
def test_there_and_back_gives_an_equal_graph(make: Callable[[], Instance]) -> None:
    graph = make().graph
    again = from_networkx(to_networkx(graph))
    assert again.ids == graph.ids and again.kinds == graph.kinds and again.names == graph.names
    for name in ("time", "allowed", "size", "backward", "color", "layer"):
        assert np.array_equal(getattr(again, name), getattr(graph, name))
    assert (again.color_labels, again.layer_labels) == (graph.color_labels, graph.layer_labels)
    assert costs(again) == costs(graph)


def test_unused_fields_come_back_too(tmp_path: Path) -> None:
    """Even those whose names networkx uses for arguments of its own."""
    content = document()
    content["nodes"][0] |= {"node_for_adding": 1, "self": 2}
    content["edges"][0] |= {"u_of_edge": 1, "weight": 2}
    graph = load(write(tmp_path, content)).graph
    again = from_networkx(to_networkx(graph))
    assert list(again.extras.nodes) == list(graph.extras.nodes)
    assert sorted(map(str, again.extras.edges)) == sorted(map(str, graph.extras.edges))


def test_defaults() -> None:
    graph = from_networkx(pair())
    assert graph.kinds == ("gpu",) and graph.ids == ("a", "b") and graph.names == ("a", "b")
    assert graph.size.tolist() == [0, 0] and graph.cost.tolist() == [0] and graph.allowed.all()
    assert not graph.backward.any() and graph.color.tolist() == [-1, -1] == graph.layer.tolist()


def test_a_kind_without_a_time_may_not_run_the_node() -> None:
    graph = from_networkx(pair(time={"npu": 2.0}))
    assert graph.kinds == ("npu", "gpu")
    assert graph.allowed.tolist() == [[True, False], [False, True]]


def test_allowed_narrows_the_kinds() -> None:
    graph = from_networkx(pair(time={"gpu": 1.0, "npu": 2.0}, allowed=["npu"]))
    assert graph.allowed[:, 0].tolist() == [False, True]


def test_parallel_edges_come_in_but_not_out() -> None:
    """A MultiDiGraph may have them, a DiGraph cannot."""
    multi: nx.MultiDiGraph[Any] = nx.MultiDiGraph(pair())
    multi.add_edge("a", "b", cost=3.0)
    graph = from_networkx(multi)
    assert sorted(graph.cost.tolist()) == [0.0, 3.0]
    with pytest.raises(WorkloadError, match=r"edge 'a' -> 'b': a networkx\.DiGraph holds it only once"):
        to_networkx(graph)


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"time": None}, "node 'a': time = None: must be a mapping from device kind to time"),
        ({"time": True}, "node 'a': time = True: must be a mapping from device kind to time"),
        ({"memory": 5e9}, "node 'a': memory = 5000000000.0: is not an attribute; give `size` (in bytes)"),
        ({"time": {"gpu": "x"}}, "node 'a': time[gpu] = 'x': must be a number"),
        ({"time": {"gpu": -1}}, "node 'a': time[gpu] = -1.0: must be a finite number of at least 0"),
        ({"time": {1: 1.0}}, "kinds = (1, 'gpu'): must be distinct texts"),
        ({"allowed": "gpu"}, "node 'a': allowed = 'gpu': must be a list of device kinds"),
        ({"allowed": None}, "node 'a': allowed = None: must be a list of device kinds"),
        ({"allowed": ["npu"]}, "node 'a': allowed = ['npu']: must be a list of device kinds that `time` has"),
        ({"allowed": [[]]}, "node 'a': allowed = [[]]: must be a list of device kinds"),
        ({"backward": "False"}, "node 'a': backward = 'False': must be true or false"),
        ({"backward": None}, "node 'a': backward = None: must be true or false"),
        ({"size": None}, "node 'a': size = None: must be a number"),
        ({"size": [1, 2]}, "size = "),
        ({"color": []}, "node 'a': color = []: must be an integer or a text"),
        ({"layer": {}}, "node 'a': layer = {}: must be an integer or a text"),
    ],
)
def test_attributes_that_mean_nothing_are_refused(attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        from_networkx(pair(**attributes))
    assert text in str(caught.value)


@pytest.mark.parametrize("cost", [None, "3", -1.0, [1.0], float("nan")])
def test_costs_that_mean_nothing_are_refused(cost: Any) -> None:
    digraph = pair()
    digraph.edges["a", "b"]["cost"] = cost
    with pytest.raises(WorkloadError, match="cost = "):
        from_networkx(digraph)


def test_nodes_must_be_integers_or_texts() -> None:
    with pytest.raises(WorkloadError, match=r"node \(1, 2\): id = \(1, 2\): must be an integer or text"):
        from_networkx(nx.relabel_nodes(pair(), {"a": (1, 2)}))


def test_a_cycle_is_named() -> None:
    digraph = pair()
    digraph.add_edge("b", "a")
    with pytest.raises(WorkloadError, match="edges: 'a' -> 'b' -> 'a': is a cycle"):
        from_networkx(digraph)


@pytest.mark.parametrize("graph", [nx.Graph(), None, [], chain().graph])
def test_only_directed_networkx_graphs_are_taken(graph: Any) -> None:
    name = type(graph).__name__
    with pytest.raises(
        WorkloadError, match=f"graph: {name}: must be a partitioner.Graph or a networkx.DiGraph"
    ):
        from_networkx(graph)


def test_a_graph_of_nothing_is_refused() -> None:
    with pytest.raises(WorkloadError, match="nodes: there must be at least one"):
        from_networkx(nx.DiGraph())


def test_ids_may_be_of_both_types() -> None:
    graph = Graph.from_arrays({"x": [1.0, 2.0]}, [(7, "b")], ids=[7, "b"])
    assert from_networkx(to_networkx(graph)).ids == (7, "b")


@pytest.mark.parametrize("name", ["bytes", "weight", "size"])
def test_what_stands_in_place_of_a_cost_is_refused_by_name(name: str) -> None:
    """It would be a transfer at no cost; beside a cost it is an attribute of the user's own."""
    digraph = pair()
    digraph.edges["a", "b"][name] = 4e6
    with pytest.raises(WorkloadError, match=rf"edge 'a' -> 'b': {name} = 4000000\.0: .* give `cost`"):
        from_networkx(digraph)
    digraph.edges["a", "b"]["cost"] = 2.0
    assert from_networkx(digraph).cost.tolist() == [2.0]


def test_bytes_become_milliseconds_at_a_bandwidth() -> None:
    digraph = pair()
    digraph.edges["a", "b"]["bytes"] = 4e6
    assert from_networkx(digraph, bandwidth=2e9).cost.tolist() == [2.0]
    with pytest.raises(OptionError, match="bandwidth = 0: must be a number above 0"):
        from_networkx(digraph, bandwidth=0)
    digraph.edges["a", "b"]["cost"] = 1.0
    with pytest.raises(WorkloadError, match=r"bytes = 4000000\.0: must not be given beside `cost`"):
        from_networkx(digraph, bandwidth=2e9)
    del digraph.edges["a", "b"]["cost"]
    digraph.edges["a", "b"]["bytes"] = "4MB"
    with pytest.raises(WorkloadError, match="edge 'a' -> 'b': bytes = '4MB': must be a number from 0"):
        from_networkx(digraph, bandwidth=2e9)


def test_a_time_without_kinds_holds_on_all_of_them() -> None:
    graph = from_networkx(pair(time=3), kinds=["npu"])
    assert graph.kinds == ("gpu", "npu") and graph.time[:, 0].tolist() == [3.0, 3.0]
    assert graph.allowed.tolist() == [[True, True], [True, False]]


def test_times_without_kinds_are_those_of_the_kinds_of_the_devices() -> None:
    digraph: nx.DiGraph[Any] = nx.DiGraph([("a", "b")])
    digraph.add_nodes_from("ab", time=1.5)
    devices = Devices((DeviceKind("gpu", 2),))
    plan = solve(digraph, devices)
    assert plan.value == 1.5 and evaluate(digraph, devices, plan.placement).value == 1.5
    with pytest.raises(WorkloadError, match=r"node '.': time = 1\.5: is a number, but no kind of device"):
        from_networkx(digraph)
