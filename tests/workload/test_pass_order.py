"""Makespans of graphs with no edge between the passes: the backward pass waits, or they are refused."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from partitioner import (
    Devices,
    Graph,
    WorkloadError,
    compare_methods,
    evaluate,
    load,
    load_pipedream,
    solve,
    split_operations,
)
from partitioner.workload.pass_order import ADDED, order_is_open, with_pass_order

PROFILES = Path(__file__).parents[2] / "instances" / "profiles"
PUBLISHED = Path(__file__).parents[3] / "shared" / "workloads" / "throughput"


def two_layers(backward_edge: tuple[str, str] = ("b'", "a'"), **changes: object) -> Graph:
    """Layers a and b with backward nodes a' and b'; a feeds two readers of one tensor."""
    given: dict[str, object] = {"color": ["a", "b", None, "b", "a"]}
    return Graph.from_arrays(
        {"accelerator": [1.0, 2.0, 0.5, 4.0, 8.0]},
        [("a", "b"), ("a", "c"), backward_edge],
        [3.0, 3.0, 5.0],
        ids=["a", "b", "c", "b'", "a'"],
        backward=[False, False, False, True, True],
        **(given | changes),  # type: ignore[arg-type]
    )


def test_backward_nodes_wait_for_the_forward_nodes_of_their_class() -> None:
    """The new edges belong to the tensors that are there, so that these stay one tensor each."""
    found = with_pass_order(two_layers())
    ids = found.ids
    pairs = [(ids[u], ids[v], c) for (u, v), c in zip(found.edges.tolist(), found.cost, strict=True)]
    assert pairs[3:] == [("a", "a'", 3.0), ("b", "b'", 0.0)]
    assert with_pass_order(found) is found


def test_classes_of_several_nodes_are_joined_where_one_pass_ends_and_the_other_begins() -> None:
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 6},
        [(0, 1), (3, 4)],
        backward=[False, False, False, True, True, True],
        color=[7] * 6,
    )
    added = {tuple(pair) for pair in with_pass_order(graph).edges.tolist()[2:]}
    assert added == {(1, 3), (1, 5), (2, 3), (2, 5)}


def test_a_graph_with_such_edges_stays_as_it_is() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1)], backward=[False, True, True], color=[0, 0, 0])
    assert not order_is_open(graph) and with_pass_order(graph) is graph
    forward = Graph.from_arrays({"gpu": [1.0] * 3})
    assert with_pass_order(forward) is forward


def test_makespans_count_both_passes_one_after_the_other() -> None:
    """On two devices the step takes a, b, b', a'; evaluator, method and bound agree, and a note says it."""
    graph, devices = two_layers(), Devices.accelerated(2)
    plan = solve(graph, devices, "makespan")
    assert (plan.value, plan.bound, plan.status) == (15.0, 15.0, "optimal")
    assert ADDED in plan.notes
    again = evaluate(graph, devices, plan.placement, "makespan", execution_order=plan.execution_order)
    assert (again.value, again.notes) == (15.0, (ADDED,))
    assert evaluate(graph, devices, plan.placement, "makespan").value == 15.0


@pytest.mark.slow
def test_split_operations_adds_the_passes_too() -> None:
    graph, devices = two_layers(), Devices.accelerated(2)
    assert split_operations(graph, devices, {}, data_parallel=False).plan.value == 15.0


def test_an_order_in_which_the_backward_pass_comes_first_is_refused() -> None:
    order = ["b'", "a'", "a", "b", "c"]
    placement = dict.fromkeys(order, "accelerator0")
    with pytest.raises(WorkloadError, match="node = \"b'\": must come after 'b'"):
        evaluate(two_layers(), Devices.accelerated(1), placement, "makespan", execution_order=order)


@pytest.mark.parametrize("name", ["vgg16", "resnet50", "gnmt4"])
def test_profiles_of_pipedream_take_both_passes(name: str) -> None:
    """No step is shorter than the longest path with the times of both passes; VGG-16 is one path."""
    workload = load_pipedream(PROFILES / f"{name}.txt", bandwidth=12e9, accelerators=4)
    time = dict(zip(workload.graph.ids, workload.graph.time[0].tolist(), strict=True))
    forward: nx.DiGraph[object] = nx.DiGraph()
    ids = workload.graph.ids
    for u, v in workload.graph.edges.tolist():
        if not workload.graph.backward[u]:
            both = time[ids[v]] + time[f"{ids[v]}/backward"]
            forward.add_edge(ids[u], ids[v], weight=both)
            forward.add_edge("", ids[u], weight=time[ids[u]] + time[f"{ids[u]}/backward"])
    plan = solve(workload.graph, workload.devices, "makespan", method="heft")
    longest = nx.dag_longest_path_length(forward)
    assert ADDED in plan.notes and plan.value >= plan.bound >= longest * (1 - 1e-9)
    if name == "vgg16":
        assert plan.bound == plan.value == pytest.approx(1163.685)


def test_throughput_and_the_hash_do_not_change() -> None:
    workload = load_pipedream(PROFILES / "vgg16.txt", bandwidth=12e9, accelerators=4)
    plan = solve(workload.graph, workload.devices)
    joined = solve(with_pass_order(workload.graph), workload.devices)
    assert plan.value == joined.value and ADDED not in plan.notes
    assert plan.workload_sha256 == workload.sha256


def test_backward_edges_along_the_forward_pass_are_refused() -> None:
    """They do not say in which order the backward pass runs."""
    graph = two_layers(("a'", "b'"))
    for ask in (
        lambda: solve(graph, Devices.accelerated(2), "makespan"),
        lambda: compare_methods(graph, Devices.accelerated(2), "makespan"),
        lambda: evaluate(graph, Devices.accelerated(1), dict.fromkeys(graph.ids, "accelerator0"), "makespan"),
    ):
        with pytest.raises(WorkloadError, match="edge \"a'\" -> \"b'\": objective 'makespan' must know"):
            ask()
    assert solve(graph, Devices.accelerated(2)).value > 0


def test_the_published_layer_graphs_for_training_are_refused() -> None:
    path = PUBLISHED / "gnmt_training.json"
    if not path.exists():
        pytest.skip("the published workloads are not here")
    workload = load(path)
    with pytest.raises(WorkloadError, match="in the direction of the forward pass"):
        solve(workload.graph, workload.devices, "makespan")


def test_passes_without_a_common_class_are_refused() -> None:
    graph = two_layers(color=None)
    with pytest.raises(WorkloadError, match="no colour class holds both"):
        solve(graph, Devices.accelerated(2), "makespan")


def test_latency_says_that_the_passes_are_not_joined() -> None:
    placement = dict.fromkeys(two_layers().ids, "accelerator0")
    found = evaluate(two_layers(), Devices.accelerated(1), placement, "latency")
    assert "the backward pass does not wait" in found.notes[0]
