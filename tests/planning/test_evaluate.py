"""The evaluator's loads are those of the paper, worked out by hand and by a slow program of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, OptionError, WorkloadError, evaluate, to_networkx
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.result import Evaluation
from partitioner.workload.devices import COMMUNICATION_MODELS
from tests.instances import branchy, chain, training, two_tensors, unsupported

Placement = dict[Any, str]


def loads(evaluation: Evaluation) -> dict[str, float]:
    """Load by device name."""
    return {entry.name: entry.load for entry in evaluation.loads}


def on(graph: Graph, devices: Devices, *parts: str | list[Any], **options: Any) -> Evaluation:
    """Evaluate the placement that puts part i on device i."""
    placement = {node: devices.names[i] for i, part in enumerate(parts) for node in part}
    return evaluate(graph, devices, placement, **options)


@pytest.mark.parametrize(
    ("communication", "first", "second"),
    [
        ("sequential", 3 + 5, 4 + 5 + 2),
        ("overlapped", max(3, 5), max(4, 5 + 2)),
        ("duplex", max(3, 5), max(4, 5, 2)),
    ],
)
def test_the_three_models_of_communication(communication: str, first: float, second: float) -> None:
    """Parts a (1), b (2) | c (4) | d (1): a's output (5) goes from the first to the second, c's (2) on."""
    graph = Graph.from_arrays(
        {"accelerator": [1.0, 2.0, 4.0, 1.0]}, [("a", "b"), ("a", "c"), ("c", "d")], [5, 5, 2], ids="abcd"
    )
    evaluation = on(graph, Devices.accelerated(3, communication=communication), "ab", "c", "d")
    assert [entry.load for entry in evaluation.loads[:2]] == [first, second]
    assert evaluation.value == max(first, second)


def test_a_tensor_is_sent_and_fetched_once() -> None:
    """Node s feeds two nodes on each of two other devices: one transfer out, one in on each."""
    edges = [("s", node) for node in "abcd"]
    graph = Graph.from_arrays({"accelerator": [1.0] + [2.0] * 4}, edges, 3.0, ids="sabcd")
    evaluation = on(graph, Devices.accelerated(3), "s", "ab", "cd")
    assert [entry.load for entry in evaluation.loads] == [1 + 3, 3 + 4, 3 + 4]


def test_edges_of_different_cost_are_different_tensors() -> None:
    """Node u keeps w, to which it would send 5, and sends 1 to v; else it sends 1 + 5."""
    graph, devices = two_tensors().graph, two_tensors().devices
    assert loads(on(graph, devices, "uw", "v")) == {"accelerator0": 6.0, "accelerator1": 5.0}
    assert loads(on(graph, devices, "u", "vw")) == {"accelerator0": 7.0, "accelerator1": 14.0}


def test_equal_costs_among_different_ones_are_different_tensors_too() -> None:
    """Costs 1, 1, 5 out of one node: each edge carries its own (Appendix E.1)."""
    graph = Graph.from_arrays({"accelerator": [0.0] * 4}, [(0, 1), (0, 2), (0, 3)], [1, 1, 5])
    evaluation = on(graph, Devices.accelerated(2), [0], [1, 2, 3])
    assert loads(evaluation) == {"accelerator0": 7.0, "accelerator1": 7.0}


def test_parallel_edges_of_one_cost_are_one_tensor() -> None:
    graph = Graph.from_arrays({"accelerator": [0.0] * 2}, [(0, 1), (0, 1)], 4.0)
    assert loads(on(graph, Devices.accelerated(2), [0], [1])) == {"accelerator0": 4.0, "accelerator1": 4.0}


def test_a_cpu_pays_nothing_but_its_neighbours_do() -> None:
    """With a | b | c on accelerator, CPU, accelerator: the accelerators move a's and b's output."""
    graph, devices = unsupported().graph, unsupported().devices
    placement = {"a": "accelerator0", "b": "cpu0", "c": "accelerator1"}
    assert loads(evaluate(graph, devices, placement)) == {
        "accelerator0": 1.5,
        "accelerator1": 1.5,
        "cpu0": 3.0,
    }


def test_an_idle_device_has_no_load() -> None:
    evaluation = on(chain().graph, Devices.accelerated(3, memory=9.0, cpus=1), [0, 1, 2])
    idle = (0.0, 0.0)
    assert evaluation.loads[1] == DeviceLoad("accelerator1", "accelerator", 0, idle, idle, idle, 0, 9.0, 0)
    assert evaluation.loads[3].memory_limit is None
    assert evaluation.bottleneck.name == "accelerator0"


def train(costs: list[float]) -> Graph:
    """Edges f -> g, f -> h, g -> h where g and h are backward; times 1, 2, 4."""
    edges = [("f", "g"), ("f", "h"), ("g", "h")]
    backward = [False, True, True]
    return Graph.from_arrays({"accelerator": [1.0, 2.0, 4.0]}, edges, costs, ids="fgh", backward=backward)


def test_a_forward_output_is_sent_in_the_forward_pass() -> None:
    """In f | g | h, f sends 0.5 forward; g and h fetch it, and h fetches g's 3, backward."""
    evaluation = on(train([0.5, 0.5, 3.0]), Devices.accelerated(3), "f", "g", "h")
    first, second, third = evaluation.loads
    assert (first.transfer_in, first.transfer_out) == ((0.0, 0.0), (0.5, 0.0))
    assert (second.transfer_in, second.transfer_out) == ((0.0, 0.5), (0.0, 3.0))
    assert (third.transfer_in, third.transfer_out) == ((0.0, 3.5), (0.0, 0.0))
    assert evaluation.value == 4 + 3.5


def test_gpipe_adds_the_largest_forward_and_the_largest_backward_load() -> None:
    """In f | g h: forward 1 + 0.5 on the first, backward 0.5 + 2 + 4 on the second."""
    evaluation = on(train([0.5, 0.5, 3.0]), Devices.accelerated(2), "f", "gh", objective="gpipe")
    assert evaluation.value == 1.5 + 6.5


def test_a_fetch_belongs_to_the_forward_pass_if_any_consumer_does() -> None:
    """Node s feeds a forward and a backward node on one device: one fetch, and it is forward."""
    graph = Graph.from_arrays(
        {"accelerator": [0.0, 2.0, 3.0]},
        [("s", "a"), ("s", "b")],
        1.0,
        ids="sab",
        backward=[False, False, True],
    )
    evaluation = on(graph, Devices.accelerated(2), "s", "ab", objective="gpipe")
    assert evaluation.loads[1].transfer_in == (1.0, 0.0)
    assert evaluation.value == (2 + 1) + 3


def test_gpipe_overlaps_each_pass_on_its_own() -> None:
    """Forward max(4, 3), backward max(1, 2) by overlap; throughput overlaps both together: max(5, 5)."""
    edges = [("f", "g"), ("b", "c")]
    graph = Graph.from_arrays(
        {"accelerator": [4.0, 0.0, 1.0, 0.0]}, edges, [3, 2], ids="fgbc", backward=[0, 0, 1, 1]
    )
    devices = Devices.accelerated(2, communication="overlapped")
    assert on(graph, devices, "fb", "gc", objective="gpipe").value == 4 + 2
    assert on(graph, devices, "fb", "gc").value == 5


def test_without_a_backward_pass_both_objectives_agree() -> None:
    instance = branchy()
    parts = ("s", "ab", "cd")
    assert on(instance.graph, instance.devices, *parts, objective="gpipe").value == 5.0


def test_memory_is_summed_and_its_limit_is_a_rule() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 3}, size=[1e9, 2e9, 4e9])
    evaluation = on(graph, Devices.accelerated(2, memory=4.5e9), [0, 2], [1])
    assert [entry.memory for entry in evaluation.loads] == [5e9, 2e9]
    assert evaluation.violations == ("accelerator0 holds 5e+09, its memory is 4.5e+09",)
    assert not evaluation.feasible


def test_rounding_in_a_sum_of_sizes_breaks_no_rule() -> None:
    """0.1 + 0.2 is above 0.3 in floating point."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 2}, size=[0.1, 0.2])
    assert on(graph, Devices.accelerated(1, memory=0.3), [0, 1]).feasible


def test_a_node_on_a_kind_that_may_not_run_it_breaks_a_rule() -> None:
    evaluation = on(unsupported().graph, unsupported().devices, "abc")
    assert evaluation.violations == ("node 'b' may not run on accelerator0",)


def test_a_kind_that_the_graph_does_not_know_breaks_a_rule() -> None:
    devices = Devices((DeviceKind("accelerator", 1), DeviceKind("tpu", 0)))
    evaluation = evaluate(chain().graph, devices, {0: "accelerator0", 1: "tpu0", 2: "accelerator0"})
    assert "tpu0 does not exist: there are 1 of kind accelerator, 0 of kind tpu" in evaluation.violations
    assert "node 1 may not run on tpu0" in evaluation.violations


def test_a_device_beyond_the_count_breaks_a_rule_but_has_a_load() -> None:
    evaluation = evaluate(
        chain().graph, Devices.accelerated(1), {0: "accelerator0", 1: "accelerator5", 2: "accelerator0"}
    )
    assert evaluation.violations == (
        "accelerator5 does not exist: there are 1 of kind accelerator, 0 of kind cpu",
    )
    assert loads(evaluation) == {"accelerator0": 6.0, "accelerator5": 2.0}


def test_a_torn_colour_class_breaks_a_rule() -> None:
    evaluation = on(training().graph, training().devices, ["f1", "f2", "b2", "g"], ["b1"])
    assert evaluation.violations == (
        "colour class 1 is on two devices: node 'f1' on accelerator0, node 'b1' on accelerator1",
    )


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        ({0: "accelerator0", 1: "accelerator0"}, "node 2: is not placed on any device"),
        ({0: "accelerator0", 1: "accelerator0", 2: "accelerator0", 9: "cpu0"}, "placement of node 9: is not"),
        ({0: "accelerator0", 1: "gpu0", 2: "accelerator0"}, "'gpu0': must be a kind (accelerator, cpu) and"),
        ({0: "accelerator", 1: "accelerator0", 2: "accelerator0"}, "device = 'accelerator': must be a kind"),
        ({0: 0, 1: "accelerator0", 2: "accelerator0"}, "device = 0: must be a kind"),
        ({0: [], 1: {}, 2: None}, "device = []: must be a kind"),
        (
            {"0": "accelerator0", "1": "accelerator0", "2": "accelerator0"},
            "placement of node '0': is not the id",
        ),
        ({}, "node 0: is not placed"),
        (
            ["accelerator0"] * 3,
            "placement: ['accelerator0', 'accelerator0', 'accelerator0']: must be a mapping",
        ),
        (None, "placement: None: must be a mapping"),
    ],
)
def test_what_is_no_placement_is_refused(placement: Any, text: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        evaluate(chain().graph, chain().devices, placement)
    assert text in str(caught.value)


@pytest.mark.parametrize("objective", ["speed", "", 1, ["throughput"]])
def test_an_unknown_objective_is_refused(objective: Any) -> None:
    with pytest.raises(OptionError, match="must be one of throughput, gpipe, latency"):
        on(chain().graph, chain().devices, [0, 1, 2], objective=objective)


def test_a_networkx_graph_is_evaluated_alike() -> None:
    graph, devices = training().graph, training().devices
    placement = dict.fromkeys(graph.ids, "accelerator0") | {"g": "accelerator1"}
    assert evaluate(to_networkx(graph), devices, placement) == evaluate(graph, devices, placement)


def reference_loads(
    graph: Graph, devices: Devices, placement: Mapping[Any, str]
) -> dict[tuple[str, bool], Any]:
    """Compute, in and out of every device, forward and backward, tensor by tensor and edge by edge."""
    kind_of = {kind.device(i): kind for kind in devices.kinds for i in range(kind.count)}
    place = [placement[node] for node in graph.ids]
    total = {(name, back): [0.0, 0.0, 0.0] for name in kind_of for back in (False, True)}
    for i, name in enumerate(place):
        total[name, bool(graph.backward[i])][0] += graph.time[graph.kinds.index(kind_of[name].name), i]
    for maker in range(len(graph)):
        out = [(int(v), float(c)) for (u, v), c in zip(graph.edges, graph.cost, strict=True) if u == maker]
        costs = {cost for _, cost in out}
        tensors = [({v for v, _ in out}, costs.pop())] if len(costs) == 1 else [({v}, c) for v, c in out]
        for users, cost in tensors:
            elsewhere = {place[v] for v in users} - {place[maker]}
            if elsewhere and kind_of[place[maker]].pays_communication:
                total[place[maker], bool(graph.backward[maker])][2] += cost
            for name in elsewhere:
                if kind_of[name].pays_communication:
                    only_backward = all(graph.backward[v] for v in users if place[v] == name)
                    total[name, only_backward][1] += cost
    return total


def combined(communication: str, compute: float, into: float, out: float) -> float:
    """The load by the model of communication."""
    if communication == "sequential":
        return compute + into + out
    return max(compute, into + out) if communication == "overlapped" else max(compute, into, out)


def random_case(rng: np.random.Generator) -> tuple[Graph, Devices, Placement]:
    """A graph of up to 14 nodes on up to five devices of three kinds, and any placement."""
    n = int(rng.integers(1, 15))
    backward = np.arange(n) >= rng.integers(1, n + 1)
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.3]
    per_node, own = rng.choice([0.0, 0.5, 1.0, 3.0], n), rng.random(n) < 0.3
    cost = [float(rng.choice([0.5, 1.0, 2.0])) if own[u] else float(per_node[u]) for u, _ in edges]
    time = {name: rng.random(n) for name in ("fast", "slow", "host")}
    graph = Graph.from_arrays(time, edges, cost, size=rng.random(n), backward=backward)
    kinds = (DeviceKind("slow", 2), DeviceKind("host", 1, None, False), DeviceKind("fast", 2))
    devices = Devices(kinds, str(rng.choice(COMMUNICATION_MODELS)))
    used = rng.choice(devices.names, rng.integers(1, 6))
    return graph, devices, {node: str(rng.choice(used)) for node in graph.ids}


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_the_evaluator_agrees_with_a_slow_program(seed: int) -> None:
    """Loads, parts of loads and both objectives on 50 random cases."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        graph, devices, placement = random_case(rng)
        expected = reference_loads(graph, devices, placement)
        evaluation = evaluate(graph, devices, placement)
        model = devices.communication
        for entry in evaluation.loads:
            passes = expected[entry.name, False], expected[entry.name, True]
            parts = (entry.compute, entry.transfer_in, entry.transfer_out)
            assert np.allclose(parts, np.transpose(passes), rtol=1e-12, atol=1e-12)
            assert math.isclose(entry.load, combined(model, *np.sum(passes, axis=0)), abs_tol=1e-12)
            here = [i for i, node in enumerate(graph.ids) if placement[node] == entry.name]
            assert entry.nodes == len(here) and math.isclose(
                entry.memory, graph.size[here].sum(), abs_tol=1e-12
            )
        assert evaluation.value == max(entry.load for entry in evaluation.loads)
        forward, backward = (
            max(combined(model, *expected[name, back]) for name in devices.names) for back in (False, True)
        )
        gpipe = evaluate(graph, devices, placement, "gpipe").value
        assert math.isclose(gpipe, forward + backward, abs_tol=1e-12)


def test_the_value_does_not_depend_on_the_order_of_nodes_and_edges() -> None:
    graph, devices, placement = random_case(np.random.default_rng(99))
    mirrored: nx.DiGraph[Any] = nx.DiGraph()
    digraph = to_networkx(graph)
    mirrored.add_nodes_from(reversed(list(digraph.nodes(data=True))))
    mirrored.add_edges_from(reversed(list(digraph.edges(data=True))))
    assert math.isclose(
        evaluate(mirrored, devices, placement).value, evaluate(graph, devices, placement).value, rel_tol=1e-12
    )
