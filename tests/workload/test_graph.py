"""A graph is made from arrays as they are meant, cannot be changed, and refuses what is none."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Workload, WorkloadError, explain, load, solve
from partitioner.workload.graph import Extras
from partitioner.workload.graph_validation import LONGEST_CYCLE
from tests.instances import training

TIME = {"gpu": [1.0, 2.0, 3.0]}


def test_scalars_stand_for_all() -> None:
    graph = Graph.from_arrays(TIME, [(0, 1), (1, 2)], 0.5, size=7, backward=False)
    assert graph.cost.tolist() == [0.5, 0.5]
    assert graph.size.tolist() == [7.0, 7.0, 7.0]
    assert not graph.backward.any() and graph.allowed.all()


def test_classes_are_numbered_in_order_of_appearance() -> None:
    graph = Graph.from_arrays(TIME, color=["b", None, "a"], layer=[3, 3, 1])
    assert graph.color.tolist() == [0, -1, 1] and graph.color_labels == ("b", "a")
    assert graph.layer.tolist() == [0, 0, 1] and graph.layer_labels == (3, 1)


def test_arrays_of_numpy_are_taken_with_their_integers() -> None:
    """Ids from ``np.arange`` are integers like any other."""
    pairs = np.array([[10, 11], [11, 12]])
    graph = Graph.from_arrays({"gpu": np.ones(3, np.float32)}, pairs, ids=np.arange(10, 13))  # type: ignore[arg-type]
    assert graph.ids == (10, 11, 12) and graph.edges.tolist() == [[0, 1], [1, 2]]
    assert all(type(node) is int for node in graph.ids)


def test_a_graph_does_not_change_with_its_source() -> None:
    times = np.array([1.0, 2.0])
    graph = Graph.from_arrays({"gpu": times})
    times[0] = 9.0
    assert graph.time.tolist() == [[1.0, 2.0]]


def test_a_graph_cannot_be_written_to() -> None:
    graph = Graph.from_arrays(TIME)
    with pytest.raises(ValueError, match="read-only"):
        graph.time[0, 0] = 5.0


def test_position_finds_every_id() -> None:
    graph = Graph.from_arrays(TIME, ids=["x", 7, "y"])
    assert [graph.position[node] for node in graph.ids] == [0, 1, 2]


def test_the_digest_tells_all_that_a_solver_sees() -> None:
    """Equal graphs have equal digests; a change of any column gives another."""
    graph = training().graph
    digests = {graph.digest, training().graph.digest}
    assert len(digests) == 1
    for name in ("time", "size", "cost"):
        digests.add(replace(graph, **{name: getattr(graph, name) + 1}).digest)
    digests.add(replace(graph, allowed=~graph.allowed).digest)
    digests.add(replace(graph, color=np.full(5, -1)).digest)
    digests.add(replace(graph, layer=np.zeros(5, np.int64), layer_labels=(1,)).digest)
    digests.add(replace(graph, edges=graph.edges[:-1], cost=graph.cost[:-1]).digest)
    digests.add(replace(graph, ids=(1, 2, 3, 4, 5)).digest)
    assert len(digests) == 9


def test_titles_and_extras_are_no_part_of_the_digest() -> None:
    graph = training().graph
    other = replace(graph, names=tuple("abcde"), extras=Extras({"note": 1}))
    assert other.digest == graph.digest


def test_pickle_gives_an_equal_graph() -> None:
    graph = training().graph
    again = pickle.loads(pickle.dumps(graph))
    assert again.digest == graph.digest and again.ids == graph.ids


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"time": [1.0]}, "time = [1.0]: must be a mapping"),
        ({"time": {}}, "nodes: there must be at least one"),
        ({"time": {"a": [1, [2]]}}, "time[a] = [1, [2]]: must be a number"),
        ({"time": {"a": [1], "b": [1, 2]}}, "time[a] = shape (1,): must have shape (2,)"),
        ({"time": {"a": [[1, 2]]}}, "time[a] = shape (1, 2)"),
        ({"time": {"a": [1, None]}}, "node 1: time[a] = None: must be a number"),
        ({"time": {"a": [1, "2"]}}, "node 1: time[a] = '2': must be a number"),
        ({"time": {"a": [1, float("nan")]}}, "node 1: time[a] = nan: must be a finite number"),
        ({"time": {"a": [1, 10**400]}}, "node 1: time[a] = inf: must be a finite number"),
        ({"time": {"a": [1, 1e200]}}, "node 1: time[a] = 1e+200: must be 0, or from 1e-100 to 1e+100"),
        ({"time": {"a": [1, 1e-200]}}, "node 1: time[a] = 1e-200: must be 0, or from 1e-100"),
        ({"time": {"a": [1, 1j]}}, "node 1: time[a] = 1j: must be a number"),
        ({"time": {1: [1.0]}}, "kinds = (1,): must be distinct texts"),
        ({"ids": [1, 1, 2]}, "node 1: id = 1: is given to more than one node"),
        ({"ids": [1, "1", 2]}, "node '1': id = '1': is given to more than one node"),
        ({"ids": [1, 2.5, 3]}, "node 2.5: id = 2.5: must be an integer or text"),
        ({"ids": [True, 2, 3]}, "node True: id = True: must be an integer or text"),
        ({"ids": [[1], 2, 3]}, "node [1]: id = [1]: must be an integer or text"),
        ({"ids": 3}, "ids = 3: must be a sequence"),
        ({"edges": [(0, 9)]}, "edge 0 -> 9: 9: is not the id of a node"),
        ({"edges": [([], 0)]}, "edge [] -> 0: []: is not the id of a node"),
        ({"edges": [(0, 1, 2)]}, "edges = [(0, 1, 2)]: must be pairs"),
        ({"edges": [5]}, "edges = [5]: must be pairs"),
        ({"edges": 5}, "edges = 5: must be a sequence"),
        ({"edges": [(1, 1)]}, "edge 1 -> 1: an edge must join two different nodes"),
        ({"edges": [(0, 1), (1, 2), (2, 0)]}, "edges: 0 -> 1 -> 2 -> 0: is a cycle"),
        (
            {"edges": [(0, 1)], "cost": -1.0},
            "edge 0 -> 1: cost = -1.0: must be a finite number of at least 0",
        ),
        ({"edges": [(0, 1)], "cost": [1.0, 2.0]}, "cost = shape (2,): must have shape (1,)"),
        ({"edges": [(0, 1)], "cost": ["x"]}, "edge 0 -> 1: cost = 'x': must be a number"),
        ({"size": -1.0}, "node 0: size = -1.0: must be a finite number of at least 0"),
        ({"backward": ["False", "", ""]}, "node 0: backward = 'False': must be true or false"),
        ({"backward": 2}, "backward = 2: must be true or false"),
        (
            {"edges": [(0, 1)], "backward": [1, 0, 0]},
            "edge 0 -> 1: an edge must not lead from a backward node to a forward node",
        ),
        ({"allowed": {"npu": True}}, "allowed = 'npu': must be a device kind"),
        ({"allowed": [True]}, "allowed = [True]: must be a mapping"),
        ({"color": [1]}, "color = 1 values: must be 3"),
        ({"color": [1, [2], 3]}, "node 1: color = [2]: must be an integer or a text"),
        ({"color": [1, float("nan"), 3]}, "node 1: color = nan: must be an integer or a text"),
        ({"color": [1, (1, []), 3]}, "node 1: color = (1, []): must be an integer or a text"),
        ({"layer": 5}, "layer = 5: must be a sequence"),
        ({"names": ["x"]}, "names = 1 values: must be 3"),
        ({"extras": {}}, "graph: extras: dict: must be a partitioner.Extras"),
        ({"extras": Extras(nodes=[{}])}, "extras.nodes = 1 values: must be 3 or none"),
    ],
)
def test_what_is_no_graph_is_refused(arguments: dict[str, Any], text: str) -> None:
    """The error names the place, the field, the value and the rule."""
    with pytest.raises(WorkloadError) as caught:
        Graph.from_arrays(**{"time": TIME, **arguments})
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("time", np.ones((1, 4)), "time = shape (1, 4): must have shape (1, 5)"),
        ("cost", np.ones(4), "cost = shape (4,): must have shape (5,)"),
        ("edges", np.full((5, 2), 9), "edges: must be from 0 to 4"),
        ("edges", [["a", "b"]], "must be an array of numbers"),
        ("color", np.full(5, 7), "color: must be from -1 to 1"),
        ("names", ("x",), "names = 1 values: must be 5 or none"),
        ("kinds", ("a", "a"), "time = shape (1, 5): must have shape (2, 5)"),
    ],
)
def test_columns_that_do_not_fit_are_refused(field: str, value: Any, text: str) -> None:
    """Made column by column, a graph is checked as well."""
    with pytest.raises(WorkloadError) as caught:
        replace(training().graph, **{field: value})
    assert text in str(caught.value)


def test_all_flaws_are_reported_together() -> None:
    with pytest.raises(WorkloadError) as caught:
        Graph.from_arrays({"gpu": [-1.0, 2.0]}, [(0, 0)], -3.0, size=[0.0, -2.0])
    assert [flaw.where for flaw in caught.value.flaws] == ["node 0", "node 1", "edge 0 -> 0", "edge 0 -> 0"]


@pytest.mark.parametrize("size", [1, 10, 300, 30_000])
def test_a_cycle_is_named_whatever_its_length(size: int) -> None:
    """The path in the message is a cycle of the graph, of which a long one is named by its first nodes."""
    rng = np.random.default_rng(size)
    order = rng.permutation(size + 2).tolist()
    edges = [*pairwise(order), (order[-1], order[0])]
    with pytest.raises(WorkloadError) as caught:
        Graph.from_arrays({"gpu": np.ones(size + 2)}, edges)
    *path, last = caught.value.flaws[0].value.split(" -> ")
    assert set(pairwise(map(int, path))) <= set(edges) and len(str(caught.value)) < 200
    if size + 2 <= LONGEST_CYCLE:
        assert path[0] == last and len(path) == size + 2
    else:
        assert last == f"... ({size + 2:,} nodes)" and len(path) == LONGEST_CYCLE


def test_nodes_without_titles_are_called_by_their_ids(tmp_path: Path) -> None:
    no, two = np.array([False, False]), np.array([1.0, 2.0])
    none, edges = np.array([-1, -1]), np.array([[0, 1]])
    graph = Graph(("gpu",), (7, "b"), two[None], ~no[None], two, no, none, none, edges, np.array([0.5]))
    assert graph.names == ("7", "b")
    devices = Devices((DeviceKind("gpu", 2),))
    Workload(graph, devices).save(tmp_path / "graph.json")
    assert load(tmp_path / "graph.json").graph.names == graph.names
    assert explain(graph, devices, solve(graph, devices)).value == 2.5
