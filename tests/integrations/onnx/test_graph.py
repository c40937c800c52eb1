"""Graphs of ONNX models have the parameters, arithmetic, bytes and times that are worked out by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import BackendUnavailable, Devices, Graph, OptionError, WorkloadError, load, solve
from partitioner.cli import main
from partitioner.integrations.onnx import graph_of
from tests.integrations.onnx.models import (
    CNN_FLOPS,
    FLOAT,
    cnn,
    halved,
    model_of,
    node,
    onnx,
    tied_network,
    transformer,
    weights_of,
)

FAST = 1e9
SIZES = {"batch": 3, "time": 5}


def field(graph: Graph, name: str) -> dict[str, Any]:
    """A further field of the nodes, by title."""
    return {title: extra.get(name) for title, extra in zip(graph.names, graph.extras.nodes, strict=True)}


def bytes_between(graph: Graph) -> dict[tuple[str, str], float]:
    """The bytes of each edge, by the titles of its ends."""
    pairs = [(graph.names[u], graph.names[v]) for u, v in graph.edges.tolist()]
    return dict(zip(pairs, np.round(graph.cost * FAST / 1e3).tolist(), strict=True))


def test_products_and_convolutions_are_counted_and_others_listed() -> None:
    graph = graph_of(cnn(), bandwidth=FAST)
    assert {name: flops for name, flops in field(graph, "flops").items() if flops} == CNN_FLOPS
    listed = graph.extras.top["operatorsWithoutFlops"]
    assert listed == {"Add": 1, "Concat": 1, "GlobalAveragePool": 1, "Mul": 1, "Relu": 1, "Split": 1}


def test_parameters_are_those_of_the_model() -> None:
    for model, sizes in ((cnn(), None), (tied_network(), {"batch": 2}), (transformer(), SIZES)):
        weights = weights_of(model)
        for granularity in ("operator", "layer"):
            graph = graph_of(model, bandwidth=FAST, dims=sizes, granularity=granularity)
            assert graph.parts[0].sum() == sum(array.nbytes for array in weights.values())
            assert sum(field(graph, "parameterCount").values()) == sum(map(np.size, weights.values()))


def test_a_tied_weight_counts_once_and_is_named_where_it_is_read() -> None:
    graph = graph_of(tied_network(), bandwidth=FAST, dims={"batch": 2})
    assert graph.names == ("first", "middle", "last")  # the weight is transposed once, not for every sample
    assert field(graph, "sharedParameters") == {"first": ["w"], "middle": None, "last": ["w"]}
    assert graph.parts[0].tolist() == [96.0, 0.0, 0.0]


def test_constants_of_shapes_are_not_tied() -> None:
    graph = graph_of(transformer(), bandwidth=FAST, dims=SIZES)
    tied = {title: names for title, names in field(graph, "sharedParameters").items() if names}
    assert tied == {"/embed/Gather": ["embed.weight"], "/head/MatMul": ["embed.weight"]}


def test_edges_carry_the_bytes_of_their_tensors() -> None:
    edges = bytes_between(graph_of(cnn(), bandwidth=FAST))
    image = 2 * 8 * 8 * 8 * 4
    assert edges["conv1", "Relu_1"] == edges["residual", "skip"] == edges["residual", "down"] == image
    assert edges["skip", "split"] == 2 * image
    assert edges["split", "gate"] == 2 * image  # both halves
    assert edges["down", "up"] == 2 * 16 * 4 * 4 * 4
    assert "unused" not in {name for pair in edges for name in pair}


def test_two_tensors_of_equal_size_to_different_readers_are_not_one() -> None:
    nodes = [
        node("Split", "x", "a b", "split", num_outputs=2, axis=0),
        node("Relu", "a", "y", "one"),
        node("Relu", "b", "z", "other"),
    ]
    graph = graph_of(model_of(nodes, {"x": (FLOAT, [2, 4])}, {"y": [1, 4], "z": [1, 4]}, {}), bandwidth=FAST)
    assert len(set(graph.cost.tolist())) == 2
    assert np.allclose(graph.cost, 16 / FAST * 1e3, rtol=1e-12)


def test_times_are_those_of_the_roofline() -> None:
    graph = graph_of(cnn(), bandwidth=FAST, device="A100-80", efficiency=0.5)
    image = 2 * 8 * 8 * 8 * 4
    weights = (8 * 27 + 8) * 4 + 2 * 3 * 8 * 8 * 4
    expected = max(CNN_FLOPS["conv1"] / 19.5e12, (weights + image) / 2039e9) / 0.5 * 1e3
    assert graph.time[0, graph.names.index("conv1")] == pytest.approx(expected)
    assert graph.time[0, graph.names.index("Flatten_10")] == 0  # a view


def test_a_type_changes_bytes_and_speeds() -> None:
    sizes = {"batch": 2}
    own = graph_of(tied_network(), bandwidth=FAST, dims=sizes, efficiency=1)
    half = graph_of(tied_network(), bandwidth=FAST, dims=sizes, dtype="bfloat16", efficiency=1)
    assert np.array_equal(half.parts[0] * 2, own.parts[0])
    assert np.allclose(half.cost * 2, own.cost)
    assert np.allclose(half.time * 2, own.time)  # all of it is traffic


def test_an_embedding_reads_only_its_rows() -> None:
    graph = graph_of(transformer(words=1000), bandwidth=FAST, dims=SIZES)
    assert field(graph, "bytesIn")["/embed/Gather"] == 15 * 8 * 4 + 15 * 8
    assert field(graph, "bytesOut")["/embed/Gather"] == 15 * 8 * 4


def test_flops_of_a_transformer() -> None:
    graph = graph_of(transformer(), bandwidth=FAST, dims=SIZES)
    tokens, products = 15, 4 * 8 * 8 + 2 * 4 * 8 * 8
    scores = 2 * 2 * 3 * 2 * 5 * 5 * 4  # scores and weighted values: 3 samples, 2 heads, 5 x 5 pairs
    assert sum(field(graph, "flops").values()) == 2 * (2 * tokens * products + scores) + 2 * tokens * 8 * 20


def test_nodes_have_the_paths_of_their_modules() -> None:
    graph = graph_of(transformer(1), bandwidth=FAST, dims=SIZES)
    label = {name: str(graph.layer_labels[i]) for name, i in zip(graph.names, graph.layer, strict=True)}
    assert label["/layers.0/attn/q/MatMul"] == "layers.0.attn.q"
    assert label["/layers.0/Add"] == "layers.0"
    assert graph_of(cnn(), bandwidth=FAST).layer_labels == ()


def test_metadata_of_torch_tells_the_module() -> None:
    model = tied_network()
    entry = model.graph.node[0].metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.name_scopes", "['', 'blocks.1', 'blocks.1.fc', 'linear']"
    graph = graph_of(model, bandwidth=FAST, dims={"batch": 1})
    assert graph.layer_labels == ("blocks.1.fc",)


def test_a_layer_is_the_sum_of_its_operators() -> None:
    fine = graph_of(transformer(), bandwidth=FAST, dims=SIZES)
    coarse = graph_of(transformer(), bandwidth=FAST, dims=SIZES, granularity="layer")
    assert coarse.names == coarse.layer_labels == ("embed", "layers.0", "layers.1", "head")
    assert coarse.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert coarse.time.sum() == pytest.approx(fine.time.sum())
    assert np.allclose(coarse.cost, 3 * 5 * 8 * 4 / FAST * 1e3)
    own = [str(fine.layer_labels[i]).startswith("layers.0") for i in fine.layer]
    assert coarse.time[0, 1] == pytest.approx(fine.time[0, own].sum())


def test_an_operator_without_a_module_belongs_to_the_layer_around_it() -> None:
    """As in exports of torch, where splitting a product leaves nodes without metadata."""
    names = ("/layers.0/a/Relu", "split", "turn", "/layers.0/b/Relu", "between", "/layers.1/Relu")
    nodes = [node("Relu", f"t{i}", f"t{i + 1}", name) for i, name in enumerate(names)]
    graph = graph_of(
        model_of(nodes, {"t0": (FLOAT, [1])}, {"t6": [1]}, {}), bandwidth=FAST, granularity="layer"
    )
    assert graph.names == ("layers.0", "between", "layers.1")
    assert field(graph, "nodes") == {"layers.0": list(names[:4]), "between": None, "layers.1": [names[5]]}


def test_shapes_that_nodes_compute_are_followed() -> None:
    """The sizes of Slice come from Shape, Div and Mul, as exporters write a split into equal parts."""
    graph = graph_of(halved(), bandwidth=FAST, dims={"batch": 4})
    assert field(graph, "bytesOut")["right"] == field(graph, "bytesOut")["sum"] == 4 * 3 * 4
    assert graph.names[1:4] == ("shape", "last", "half")  # they stay nodes


def test_layers_that_read_each_other_are_refused() -> None:
    names = ("/a/Relu", "/b/Relu", "/a/Relu_1")
    nodes = [node("Relu", f"t{i}", f"t{i + 1}", name) for i, name in enumerate(names)]
    model = model_of(nodes, {"t0": (FLOAT, [1])}, {"t3": [1]}, {})
    with pytest.raises(WorkloadError, match=r"layers a, b: read each other; use granularity='operator'"):
        graph_of(model, bandwidth=FAST, granularity="layer")


def test_external_data_is_not_read(tmp_path: Path) -> None:
    path, whole = tmp_path / "model.onnx", transformer(hidden=32)
    expected = graph_of(whole, bandwidth=FAST, dims=SIZES)
    onnx.save(whole, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(WorkloadError, match="tensor qr0: has no shape"):
        graph_of(path, bandwidth=FAST, dims=SIZES)  # the shapes of Reshape are in the file that is gone
    onnx.save(transformer(hidden=32), path, save_as_external_data=True, location="weights.bin")
    (tmp_path / "weights.bin").unlink()
    assert graph_of(path, bandwidth=FAST, dims=SIZES).digest == expected.digest


def test_a_model_is_not_changed() -> None:
    model = transformer()
    before = model.SerializeToString(deterministic=True)
    graph_of(model, bandwidth=FAST, dims=SIZES)
    assert model.SerializeToString(deterministic=True) == before


def test_calls_of_own_functions_are_replaced_by_their_bodies() -> None:
    helper = onnx.helper
    opset = [helper.make_opsetid("", 20)]
    body = [node("MatMul", "a b", "t", "product"), node("Relu", "t", "c", "relu")]
    function = helper.make_function("own", "dense", ["a", "b"], ["c"], body, opset)
    call = helper.make_node("dense", ["x", "w"], ["y"], "call", domain="own")
    info = helper.make_tensor_value_info
    weight = onnx.numpy_helper.from_array(np.ones((4, 6), np.float32), "w")
    graph = helper.make_graph(
        [call], "model", [info("x", FLOAT, [2, 4])], [info("y", FLOAT, [2, 6])], [weight]
    )
    opsets = [*opset, helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=10)
    found = graph_of(model, bandwidth=FAST)
    assert [extra["operators"] for extra in found.extras.nodes] == [["MatMul"], ["Relu"]]
    assert found.extras.nodes[0]["flops"] == 2 * 2 * 4 * 6


def test_load_and_the_command_line_read_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(transformer(), path)
    workload = load(path, bandwidth=FAST, dims=SIZES, accelerators=2, device="H200")
    assert workload.graph.digest == graph_of(path, bandwidth=FAST, dims=SIZES, device="H200").digest
    assert workload.devices.kinds[0].memory == 141e9
    options = ["--bandwidth", "1e9", "--dims", "batch=3,time=5", "--accelerators", "2", "--format", "json"]
    assert main(["solve", str(path), *options, "--device", "H200"]) == 0
    plan = solve(workload.graph, workload.devices)
    assert f'"value": {plan.value}' in capsys.readouterr().out
    saved = tmp_path / "saved.json"
    workload.save(saved)
    assert load(saved).graph.digest == workload.graph.digest


def test_without_onnx_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(cnn(), path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(BackendUnavailable, match=r'need onnx: pip install "dnn-partitioner\[onnx\]"'):
        load(path, bandwidth=FAST, accelerators=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dims": {"batch": 1.5}}, r"dims\['batch'\] = 1.5: must be an integer of at least 1"),
        ({"dims": ["batch"]}, r"dims = \['batch'\]: must be a mapping"),
        ({"dims": {"bach": 1}}, "'bach': is not in model; .*did you mean 'batch'"),
        ({"device": "H1000"}, "device = 'H1000': must be one of"),
        ({"dtype": "real"}, "dtype = 'real': must be one of"),
        ({"efficiency": 0}, "efficiency = 0: must be"),
        ({"granularity": "block"}, "granularity = 'block': must be one of operator, layer"),
        ({"bandwidth": None}, "bandwidth = None: must be"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        graph_of(tied_network(), **{"bandwidth": FAST, "dims": {"batch": 2}, **options})


def test_a_plan_of_a_model() -> None:
    graph = graph_of(transformer(4), bandwidth=1e12, dims=SIZES)
    plan = solve(graph, Devices.accelerated(2))
    assert plan.status == "optimal" and len({*plan.placement.values()}) == 2
