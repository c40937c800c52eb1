"""Subgraphs are the fewest contiguous ones, or those given; what breaks their rules is named."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest

from partitioner import Devices, Evaluation, Graph, WorkloadError, evaluate
from partitioner.evaluation.placed import Placed, read_placement
from partitioner.evaluation.subgraphs import units_of

DEVICES = Devices.accelerated(2, cpus=1)
SHORT = {"A": "accelerator0", "B": "accelerator1", "C": "cpu0"}


def pairs(edges: str, **options: Any) -> Graph:
    """A graph from edges like ``"ab bc"``; its nodes take 1 everywhere."""
    ids = sorted(set(edges) - {" "})
    times = {"accelerator": [1.0] * len(ids), "cpu": [1.0] * len(ids)}
    return Graph.from_arrays(times, [(e[0], e[1]) for e in edges.split()], 1.0, ids=ids, **options)


def placed(graph: Graph, places: str) -> Placed:
    """Node i, in alphabetical order, is on the device that letter i stands for."""
    return read_placement(
        graph, DEVICES, dict(zip(graph.ids, (SHORT[place] for place in places), strict=True))
    )


def derived(graph: Graph, places: str) -> list[int | None]:
    """The index of every node's subgraph."""
    units = units_of(placed(graph, places), None)
    return [units.index[unit] for unit in units.of]


def verdict(graph: Graph, places: str, subgraphs: Any = None, limit: int = 1) -> Evaluation:
    """The evaluation of a placement and its subgraphs."""
    placement = {node: SHORT[place] for node, place in zip(graph.ids, places, strict=True)}
    return evaluate(
        graph, DEVICES, placement, "latency", subgraphs=subgraphs, subgraphs_per_accelerator=limit
    )


def test_each_return_to_a_device_begins_a_subgraph() -> None:
    assert derived(pairs("ab bc cd de"), "ABACA") == [0, 0, 1, None, 2]


def test_a_detour_over_several_devices_is_one_return() -> None:
    assert derived(pairs("ab bc cd"), "ABCA") == [0, 0, None, 1]


def test_the_path_with_most_returns_counts() -> None:
    """Node e is reached by a -> b -> c -> d -> e with two returns and by a -> e with none."""
    assert derived(pairs("ab bc cd de ae"), "ABABA") == [0, 0, 1, 1, 2]


def test_a_node_goes_to_the_earliest_subgraph_it_can_be_in() -> None:
    """Node d has no return before it, though c has."""
    assert derived(pairs("ab bc ad"), "ABAA") == [0, 0, 1, 0]


def test_passes_are_counted_apart() -> None:
    """A return in the forward pass, or from it to the backward pass, is none of the backward pass."""
    graph = pairs("ab bc cd de ef", backward=[0, 0, 0, 1, 1, 1])
    assert derived(graph, "ABAABA") == [0, 0, 1, 0, 0, 1]
    assert derived(pairs("ab bc", backward=[0, 1, 1]), "ABA") == [0, 0, 0]


def test_units_stand_in_the_order_of_execution() -> None:
    """Per accelerator forward before backward, then by index; CPU nodes one by one at the end."""
    graph = pairs("ab bc cd de", backward=[0, 0, 0, 1, 1])
    units = units_of(placed(graph, "AAACC"), {"a": 2, "b": 2, "c": 7})
    assert units.of.tolist() == [0, 0, 1, 2, 3]
    assert units.index == (2, 7, None, None)
    units = units_of(placed(graph, "ABAAB"), None)
    assert units.of.tolist() == [0, 3, 1, 2, 4]
    assert (units.device.tolist(), units.backward.tolist()) == (
        [0, 0, 0, 1, 1],
        [False] * 2 + [True, False, True],
    )


def reach(graph: Graph) -> set[tuple[int, int]]:
    """Which node comes before which."""
    return set(nx.transitive_closure_dag(nx.DiGraph(graph.edges.tolist())).edges)


def fewest(graph: Graph, here: list[int]) -> int:
    """The smallest number of contiguous sets, in an order, that these nodes can be parted into."""
    before = reach(graph)
    for count in range(1, len(here) + 1):
        for choice in product(range(count), repeat=len(here)):
            index = dict(zip(here, choice, strict=True))
            ordered = all(index[u] <= index[v] for u in here for v in here if (u, v) in before)
            if ordered and not any(
                (u, v) in before and (v, w) in before and index[u] == index[w] != index.get(v)
                for u, w in product(here, repeat=2)
                for v in range(len(graph))
            ):
                return count
    return 0


@pytest.mark.parametrize("seed", range(3))
def test_no_fewer_subgraphs_would_do(seed: int) -> None:
    """Against all ways to part the nodes of a device, on 40 random graphs."""
    rng = np.random.default_rng(seed)
    counts = set()
    for _ in range(40):
        n = int(rng.integers(3, 10))
        edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.35]
        graph = Graph.from_arrays({"accelerator": [1.0] * n, "cpu": [1.0] * n}, edges)
        places = "".join(rng.choice(list("AABC"), n))
        index = derived(graph, places)
        here = [i for i in range(n) if places[i] == "A"][:6]
        kept = places if len(here) == places.count("A") else ""
        if kept:
            assert len({index[i] for i in here}) == fewest(graph, here)
            counts.add(fewest(graph, here))
    assert {1, 2} <= counts


def test_more_subgraphs_than_allowed_break_a_rule() -> None:
    """Three pieces a, c, e; node c is in the second, e in the third."""
    graph = pairs("ab bc cd de")
    one, two = verdict(graph, "ACACA"), verdict(graph, "ACACA", limit=2)
    assert one.violations == (
        "accelerator0 holds 3 forward subgraphs, it may hold at most 1: node 'c' is in one more",
    )
    assert two.violations == (
        "accelerator0 holds 3 forward subgraphs, it may hold at most 2: node 'e' is in one more",
    )
    assert verdict(graph, "ACACA", limit=3).feasible
    assert one.value == two.value < np.inf


def test_each_pass_may_hold_as_many() -> None:
    graph = pairs("ab cd", backward=[0, 0, 1, 1])
    assert verdict(graph, "AAAA").feasible
    parted = verdict(graph, "AAAA", {"a": 0, "b": 0, "c": 0, "d": 1})
    assert parted.violations == (
        "accelerator0 holds 2 backward subgraphs, it may hold at most 1: node 'd' is in one more",
    )


def test_indices_may_leave_gaps() -> None:
    assert verdict(pairs("ab"), "AA", {"a": 3, "b": 10**30}, limit=2).feasible


def test_a_subgraph_with_a_hole_breaks_a_rule() -> None:
    found = verdict(pairs("ab bc"), "ABA", {"a": 0, "b": 0, "c": 0})
    assert found.violations == (
        "forward subgraph 0 of accelerator0 is not contiguous: a path leaves it and returns at node 'c'",
        "subgraphs wait for one another: accelerator0 (node 'a'), accelerator1 (node 'b')",
    )
    assert found.schedule is None


def test_the_first_return_is_named() -> None:
    found = verdict(pairs("ab bc cd de"), "ABABA", dict.fromkeys("abcde", 0))
    assert [text.rsplit(" ", 1)[1] for text in found.violations[:2]] == ["'c'", "'d'"]


def test_a_hole_may_be_another_subgraph_of_the_same_device() -> None:
    found = verdict(pairs("ab bc"), "AAA", {"a": 0, "b": 1, "c": 0}, limit=2)
    assert "forward subgraph 0 of accelerator0 is not contiguous" in found.violations[0]
    assert found.value == np.inf


def test_subgraphs_that_wait_for_one_another_are_named() -> None:
    """With a -> b and c -> d both parts are contiguous, yet each needs the other's output."""
    found = verdict(pairs("ab cd"), "ABBA")
    assert found.violations == (
        "subgraphs wait for one another: accelerator0 (node 'a'), accelerator1 (node 'b')",
    )
    assert verdict(pairs("ab cd"), "ABBA", {"a": 0, "b": 1, "c": 0, "d": 1}, limit=2).feasible


def test_the_order_on_a_device_must_follow_the_edges() -> None:
    found = verdict(pairs("ab"), "AA", {"a": 1, "b": 0}, limit=2)
    assert found.violations == ("subgraphs wait for one another: accelerator0 (node 'b')",)


def test_a_cpu_in_between_is_named_too() -> None:
    """Node c in subgraph 0 needs b on the CPU, which needs a in subgraph 1."""
    found = verdict(pairs("ab bc"), "ACA", {"a": 1, "c": 0}, limit=2)
    assert len(found.violations) == 1
    assert all(name in found.violations[0] for name in ("accelerator0 (node", "cpu0 (node 'b')"))


@pytest.mark.parametrize(
    ("subgraphs", "text"),
    [
        ({"a": 0}, "node 'b': is on accelerator1, and its subgraph is not given"),
        ({"a": 0, "b": -1}, "node 'b': subgraph = -1: must be an integer of at least 0"),
        ({"a": 0, "b": 0.0}, "node 'b': subgraph = 0.0: must be"),
        ({"a": True, "b": 0}, "node 'a': subgraph = True: must be"),
        ({"a": None, "b": 0}, "node 'a': subgraph = None: must be"),
        ({"a": 0, "b": 0, "c": "x"}, "node 'c': subgraph = 'x': must be"),
        ({"a": 0, "b": 0, "z": 0}, "subgraph of node 'z': is not the id of a node of the graph"),
        ([0, 0, 0], "subgraphs: [0, 0, 0]: must be a mapping"),
    ],
)
def test_bad_subgraphs_are_refused(subgraphs: Any, text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        verdict(pairs("ab bc"), "ABC", subgraphs)
    assert text in str(caught.value)


def test_the_subgraph_of_a_cpu_node_means_nothing() -> None:
    graph = pairs("ab bc")
    given: dict[str, Any] = {"a": np.int64(0), "b": 0}
    assert verdict(graph, "ABC", given | {"c": 5}) == verdict(graph, "ABC", given) == verdict(graph, "ABC")
