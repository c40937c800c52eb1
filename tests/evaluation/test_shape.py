"""A placement is a chain, convex or free exactly where the definitions say so."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, evaluate
from partitioner.evaluation.shape import Shape, placement_shape
from tests.instances import chain, training, woven

NAMES = ["d0", "d1", "d2"]


def shape_of(graph: Graph, *parts: str | list[Any]) -> Shape:
    """The shape of the placement that puts part i on device i."""
    device = {node: i for i, part in enumerate(parts) for node in part}
    return placement_shape(graph, np.array([device[node] for node in graph.ids]), NAMES)


def pairs(*edges: str, **options: Any) -> Graph:
    """A graph from edges like ``"ab"``."""
    ids = sorted({node for edge in edges for node in edge})
    return Graph.from_arrays({"x": [1.0] * len(ids)}, [(e[0], e[1]) for e in edges], ids=ids, **options)


def test_convex_is_not_yet_a_chain() -> None:
    """Edges a -> b and c -> d: {a, d} and {b, c} are contiguous, yet each feeds the other."""
    shape = shape_of(pairs("ab", "cd"), "ad", "bc")
    assert (shape.name, shape.forward_convex, shape.order) == ("convex", True, ())


def test_a_chain_comes_with_its_order() -> None:
    shape = shape_of(pairs("ab", "bc", "cd"), "cd", "a", "b")
    assert (shape.name, shape.order) == ("chain", ("d1", "d2", "d0"))


def test_a_path_that_leaves_and_returns_is_free() -> None:
    shape = shape_of(pairs("ab", "bc"), "ac", "b")
    assert (shape.name, shape.forward_convex) == ("free", False)


def test_the_path_may_return_after_a_detour() -> None:
    """From d0 by d1 and d2 back to d0: no single edge returns to where one left."""
    assert shape_of(pairs("ab", "bc", "cd"), "ad", "b", "c").name == "free"


def test_only_the_devices_in_use_are_in_the_order() -> None:
    assert shape_of(chain().graph, [], [0, 1, 2]).order == ("d1",)


def test_a_lone_node_is_a_chain() -> None:
    assert shape_of(Graph.from_arrays({"x": [1.0]}), [0]).name == "chain"


def test_classes_that_feed_each_other_are_no_chain_apart() -> None:
    assert shape_of(woven().graph, "ade", "bc").name == "convex"
    assert shape_of(woven().graph, "abcd", "e").order == ("d0", "d1")


def test_an_orphan_runs_against_the_chain() -> None:
    """b2 -> g -> b1 is mirrored, as no forward node has the colour of g: g lies between the pairs."""
    graph = training().graph
    assert shape_of(graph, ["f1", "b1"], ["g"], ["f2", "b2"]).order == ("d0", "d1", "d2")
    assert shape_of(graph, ["f1", "b1", "f2", "b2"], ["g"]).name == "convex"


def test_a_backward_node_with_a_forward_twin_is_not_mirrored() -> None:
    """Edges f -> h forward, c -> b backward, where b is of the colour of h, c of f.

    Mirrored, c -> b would go from b's device to c's; its twins order the devices already.
    """
    colors = {"b": "x", "h": "x", "c": "y", "f": "y"}
    graph = pairs("fh", "cb", backward=[1, 1, 0, 0], color=[colors[node] for node in "bcfh"])
    assert shape_of(graph, "fc", "hb").order == ("d0", "d1")


def test_forward_edges_into_backward_nodes_do_not_order_stages() -> None:
    """f1 -> f2 orders the devices; f2 -> b1 leads back and does not matter."""
    graph = Graph.from_arrays(
        {"x": [1.0] * 3}, [(0, 1), (1, 2)], backward=[False, False, True], color=[1, 2, 1]
    )
    assert shape_of(graph, [0, 2], [1]).order == ("d0", "d1")


def test_the_backward_part_is_judged_on_its_own() -> None:
    """Backward b -> c -> d with c apart: not convex, while the forward part is."""
    graph = pairs("bc", "cd", "fg", backward=[1, 1, 1, 0, 0], color=["x", "y", "x", "x", "y"])
    shape = shape_of(graph, "bdf", "cg")
    assert (shape.name, shape.forward_convex, shape.backward_convex) == ("chain", True, False)


def test_only_the_torn_devices_are_named() -> None:
    """Paths a -> u -> A and c -> v -> C forward, e -> w -> E backward."""
    graph = pairs("au", "uA", "cv", "vC", "ew", "wE", backward=[0, 0, 1, 0, 0, 1, 0, 0, 1])
    assert graph.ids == ("A", "C", "E", "a", "c", "e", "u", "v", "w")
    shape = shape_of(graph, "aAw", "uvcC", "eE")
    assert (shape.name, shape.torn_forward, shape.torn_backward) == ("free", ("d0",), ("d2",))
    assert shape_of(graph, "acAC", "uvw", "eE").torn_forward == ("d0",)
    assert shape_of(graph, "aAe", "u", "cvCwE").torn_backward == ()


def reaches(graph: Graph, part: np.ndarray) -> np.ndarray:
    """Which node reaches which through nodes of the part, by repeated squaring."""
    n = len(graph)
    reach = np.zeros((n, n), dtype=bool)
    for u, v in graph.edges.tolist():
        reach[u, v] = part[u] and part[v]
    for _ in range(n):
        reach |= (reach.astype(int) @ reach.astype(int)) > 0
    return reach


def contiguous(graph: Graph, device: np.ndarray, part: np.ndarray, judged: set[int]) -> bool:
    """Definition 3.1 word by word for some devices: no u and w in a set, v outside it, with u ~> v ~> w."""
    reach = reaches(graph, part)
    nodes = np.flatnonzero(part).tolist()
    return not any(
        reach[u, v] and reach[v, w]
        for u in nodes
        for v in nodes
        for w in nodes
        if int(device[u]) in judged and device[u] == device[w] != device[v]
    )


def is_chain(graph: Graph, device: np.ndarray) -> bool:
    """Some order of the devices takes every forward edge, and mirrored orphan edges, nowhere back."""
    twins = {c for c, back in zip(graph.color.tolist(), graph.backward, strict=True) if not back and c >= 0}
    orphan = [bool(b) and c not in twins for c, b in zip(graph.color.tolist(), graph.backward, strict=True)]
    arcs = []
    for u, v in graph.edges.tolist():
        if not graph.backward[v]:
            arcs.append((u, v))
        elif graph.backward[u] and (orphan[u] or orphan[v]):
            arcs.append((v, u))
    used = sorted(set(device.tolist()))
    return any(
        all(order.index(device[u]) <= order.index(device[v]) for u, v in arcs) for order in permutations(used)
    )


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 100), *(pytest.param(seed, 400, marks=pytest.mark.slow) for seed in range(2))]
)
def test_shapes_agree_with_the_definitions(seed: int, count: int) -> None:
    """On random graphs of up to nine nodes, three devices and colours; all shapes turn up."""
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(count):
        n = int(rng.integers(1, 10))
        backward = np.arange(n) >= rng.integers(n // 2, n + 1)
        edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.25]
        color = [int(c) if c < 4 else None for c in rng.integers(0, 6, n)]
        graph = Graph.from_arrays({"x": np.ones(n)}, edges, backward=backward, color=color)
        device = np.sort(rng.integers(0, 3, n)) if rng.random() < 0.5 else rng.integers(0, 3, n)
        shape = placement_shape(graph, device, NAMES)
        assert shape.forward_convex == contiguous(graph, device, ~backward, {0, 1, 2})
        assert shape.backward_convex == contiguous(graph, device, backward, {0, 1, 2})
        assert (shape.name == "chain") == is_chain(graph, device)
        assert (shape.name == "free") == (not shape.forward_convex)
        for name, part in (("torn_forward", ~backward), ("torn_backward", backward)):
            torn = {NAMES[d] for d in range(3) if not contiguous(graph, device, part, {d})}
            assert set(getattr(shape, name)) == torn
        seen.add(shape.name)
    assert seen == {"chain", "convex", "free"}


def test_evaluate_names_the_devices_of_the_order() -> None:
    devices = Devices.accelerated(2)
    placement = {0: "accelerator1", 1: "accelerator0", 2: "accelerator0"}
    assert evaluate(chain().graph, devices, placement).shape.order == ("accelerator1", "accelerator0")
