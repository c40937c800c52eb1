"""A list of layers becomes the graph that its fields say, and what is shared is held twice and exchanged."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, Layer, OptionError, WorkloadError, evaluate, solve
from tests.oracle import best_values

WTE = 300.0


def layers(**changed: Any) -> list[Layer]:
    """An embedding, two blocks with a skip connection over the second one, and a head with its weights."""
    head: dict[str, Any] = {"name": "head", "forward": 2.0, "backward": 3.0, "parameters": WTE}
    head |= {"inputs": ("blocks.1", "blocks.0"), "shared": {"wte": WTE}}
    return [
        Layer("embedding", 1.0, 2.0, parameters=400.0, output=50.0, shared={"wte": WTE}),
        Layer("blocks.0", 4.0, 8.0, parameters=100.0, activations=20.0, output=50.0, workspace=7.0),
        Layer("blocks.1", 4.0, 8.0, parameters=100.0, activations=20.0, output=50.0, optimizer=9.0),
        Layer(**head | changed),
    ]


def edges(graph: Graph) -> dict[tuple[Any, Any], float]:
    """The cost of each edge by the ids of its ends."""
    pairs = [(graph.ids[u], graph.ids[v]) for u, v in graph.edges.tolist()]
    return dict(zip(pairs, graph.cost.tolist(), strict=True))


def test_every_field_has_its_place() -> None:
    """1e4 bytes a second are 10 bytes in a ms; a batch of 4 pays the exchange of 300 bytes as 7.5 ms."""
    graph = Graph.chain(layers(), bandwidth=1e4, microbatches=4)
    names = ("embedding", "blocks.0", "blocks.1", "head")
    assert graph.ids == (*names, *(f"{name}/backward" for name in names)) and graph.names == names * 2
    assert graph.time.tolist() == [[1.0, 4.0, 4.0, 2.0, 2.0, 8.0, 8.0, 3.0]]
    assert graph.backward.tolist() == [False] * 4 + [True] * 4
    assert graph.color.tolist() == [0, 1, 2, 3] * 2 == graph.layer.tolist()
    assert graph.layer_labels == names
    assert graph.parts.tolist() == [
        [400.0, 100.0, 100.0, 300.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 400.0, 100.0, 100.0, 300.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0],
        [0.0, 20.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ]
    assert edges(graph) == {
        ("embedding", "blocks.0"): 5.0,
        ("blocks.0", "blocks.1"): 5.0,
        ("blocks.1", "head"): 5.0,
        ("blocks.0", "head"): 5.0,
        ("blocks.0/backward", "embedding/backward"): 5.0,
        ("blocks.1/backward", "blocks.0/backward"): 5.0,
        ("head/backward", "blocks.1/backward"): 5.0,
        ("head/backward", "blocks.0/backward"): 5.0,
        ("head/backward", "embedding/backward"): 7.5,
        **{(name, f"{name}/backward"): 5.0 for name in names[:3]},
        ("head", "head/backward"): 0.0,
    }
    assert [extra.get("sharedParameters") for extra in graph.extras.nodes] == [
        ["wte"],
        None,
        None,
        ["wte"],
    ] * 2


def test_a_layer_may_say_what_it_reads_of_each_other_one() -> None:
    """30 bytes of one block and 40 of the other one, in place of their 50."""
    graph = Graph.chain(layers(inputs={"blocks.1": 30.0, "blocks.0": 40.0}), bandwidth=1e4)
    cost = edges(graph)
    assert cost["blocks.1", "head"] == cost["head/backward", "blocks.1/backward"] == 3.0
    assert cost["blocks.0", "head"] == 4.0 and cost["blocks.0", "blocks.1"] == 5.0


def test_inference_has_neither_backward_nodes_nor_what_they_need() -> None:
    graph = Graph.chain(layers(), bandwidth=1e4, training=False)
    assert graph.ids == ("embedding", "blocks.0", "blocks.1", "head") and (graph.color == -1).all()
    assert len(graph.edges) == 4
    assert graph.parts.sum(axis=1).tolist() == [900.0, 0.0, 0.0, 0.0, 7.0]
    forward = [Layer(layer.name, layer.forward) for layer in layers()]
    assert Graph.chain(forward).digest == Graph.chain(forward, training=False).digest


def test_a_kind_without_a_time_may_not_run_the_layer() -> None:
    graph = Graph.chain([Layer("a", {"gpu": 1.0}), Layer("b", {"gpu": 1.0, "cpu": 3.0}, more={"note": 1})])
    assert graph.kinds == ("gpu", "cpu") and graph.time.tolist() == [[1.0, 1.0], [0.0, 3.0]]
    assert graph.allowed.tolist() == [[True, True], [False, True]]
    assert list(graph.extras.nodes) == [{}, {"note": 1}]


def test_the_exchange_is_paid_only_between_devices() -> None:
    """By hand: embedding | rest: 3 + 5 out + 5 in + 30 in; together 32 and no transfer."""
    graph = Graph.chain(layers(), bandwidth=1e4)
    devices = Devices.accelerated(2)
    apart = evaluate(
        graph, devices, {node: f"accelerator{int(i % 4 > 0)}" for i, node in enumerate(graph.ids)}
    )
    assert [load.load for load in apart.loads] == [3.0 + 5.0 + 5.0 + 30.0, 29.0 + 5.0 + 5.0 + 30.0]
    assert [load.memory for load in apart.loads] == [800.0, 500.0 * 2 + 40.0 + 9.0 + 7.0]
    together = evaluate(graph, devices, dict.fromkeys(graph.ids, "accelerator0"))
    assert together.value == 32.0


def test_an_exchange_as_dear_as_a_gradient_is_paid_as_well() -> None:
    """Edges of equal cost out of a node carry one tensor, so the two costs must differ."""
    cases = [Layer("a", 1.0, 1.0, parameters=50.0, output=50.0, shared={"w": 50.0}), Layer("b", 1.0, 1.0)]
    cases.append(Layer("c", 1.0, 1.0, parameters=50.0, inputs=("a", "b"), shared={"w": 50.0}))
    graph = Graph.chain(cases, bandwidth=1e4)
    found = evaluate(
        graph, Devices.accelerated(2), {n: f"accelerator{int(str(n)[0] == 'c')}" for n in graph.ids}
    )
    assert found.loads[1].load == pytest.approx(2.0 + 5.0 + 5.0 + 5.0)  # activation in, gradient, exchange


def random_layers(rng: random.Random, n: int) -> list[Layer]:
    """Layers of two kinds of devices with skip connections and shared parameters."""
    made: list[Layer] = []
    for i in range(n):
        inputs = tuple(sorted({*([f"l{i - 1}"] if i else []), *rng.sample([m.name for m in made], i // 2)}))
        shared = {name: 40.0 for name in ("u", "v") if rng.random() < 0.4}
        times = {"accelerator": float(rng.randint(1, 9)), "cpu": float(rng.randint(5, 40))}
        made.append(
            Layer(
                f"l{i}",
                times,
                {kind: 2 * time for kind, time in times.items()},
                parameters=80.0,
                output=float(rng.randint(0, 3)),
                inputs=inputs,
                shared=shared,
            )
        )
    return made


@pytest.mark.parametrize("cases", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_the_best_split_is_that_of_exhaustive_search(cases: int) -> None:
    rng = random.Random(5)
    for case in range(cases):
        graph = Graph.chain(random_layers(rng, rng.randint(1, 5)), bandwidth=1e4)
        devices = Devices.accelerated(2, cpus=1)
        found = solve(graph, devices)
        assert found.value == pytest.approx(best_values(graph, devices)["chain"]), case
        assert found.status == "optimal"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"name": "embedding"}, "layer 'embedding': name = 'embedding': is given to more than one layer"),
        ({"name": ""}, "layer '': name = '': must be a text that is not empty"),
        ({"parameters": -1.0}, "layer 'head': parameters = -1.0: must be a finite number of at least 0"),
        ({"output": "many"}, "layer 'head': output = 'many': must be a finite number"),
        ({"gradients": np.inf}, "layer 'head': gradients = inf: must be a finite number"),
        ({"forward": {}}, "layer 'head': forward = {}: must have the time of some kind of device"),
        ({"forward": {"gpu": -2.0}}, r"layer 'head': forward[gpu] = -2.0: must be a finite number"),
        ({"forward": {1: 2.0}}, "layer 'head': forward = 2.0: must be"),
        ({"backward": None}, "layer 'head': backward: is missing; a graph for training needs it"),
        ({"backward": {"cpu": 1.0}}, "layer 'head': backward = {'cpu': 1.0}: must have times on accelerator"),
        ({"inputs": "blocks.1"}, "layer 'head': inputs = 'blocks.1': must be a sequence of names"),
        (
            {"inputs": ["block.1"]},
            "layer 'head': inputs = 'block.1': must be the name of an earlier layer; did",
        ),
        ({"inputs": ["head"]}, "layer 'head': inputs = 'head': must be the name of an earlier layer"),
        ({"more": [1]}, "layer 'head': more = [1]: must be a mapping"),
        ({"size": 10**400}, "layer 'head': size = "),
        ({"inputs": {"blocks.1": -1.0}}, "layer 'head': inputs[blocks.1] = -1.0: must be a finite number"),
        (
            {"inputs": {"blocks.7": 1.0}},
            "layer 'head': inputs = 'blocks.7': must be the name of an earlier layer",
        ),
        ({"shared": ["wte"]}, "layer 'head': shared = ['wte']: must be a mapping from names to bytes"),
        (
            {"shared": {"wte": 7.0}},
            "layer 'head': shared[wte] = 7.0: must be 300 bytes, as in layer 'embed",
        ),
        ({"shared": {"w": -7.0}}, "layer 'head': shared[w] = -7.0: must be a finite number"),
        (
            {"shared": {"w": 900.0}},
            "layer 'head': parameters = 300.0: must be at least the 900 bytes of",
        ),
    ],
)
def test_a_broken_rule_is_named(head: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        Graph.chain(layers(**head), bandwidth=1e4, training=True)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "bandwidth = None: must be a number above 0, in bytes per second, because layer 'embedding'",
        ),
        ({"bandwidth": 0}, "bandwidth = 0: must be a number above 0, in bytes per second"),
        ({"bandwidth": True}, "bandwidth = True: must be a number above 0"),
        ({"bandwidth": 1e4, "training": 1}, "training = 1: must be True, False or None"),
        ({"bandwidth": 1e4, "microbatches": 0}, "microbatches = 0: must be an integer of at least 1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        Graph.chain(layers(), **options)
    assert message in str(caught.value)


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(WorkloadError, match="layers: 'a': must be a Layer of partitioner"):
        Graph.chain(["a"])  # type: ignore[list-item]
    with pytest.raises(WorkloadError, match="graph: nodes: there must be at least one"):
        Graph.chain([])
