"""The pieces of an ONNX model, run one after another, compute what the model does, to the bit."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import BackendUnavailable, Graph, Plan, Workload, WorkloadError, export, solve
from partitioner.integrations.onnx import write_pieces
from tests.exports.models import cuts, gpus, planned

onnx: Any = pytest.importorskip("onnx", reason="onnx is missing: pip install onnx")
KINDS = ("MatMul", "Add", "Relu", "Split")


def random_model(seed: int) -> tuple[Any, Graph]:
    """A model of random operators on 2 x 4 tensors, with skips and constants, and its graph."""
    rng = np.random.default_rng(seed)
    float_type, helper = onnx.TensorProto.FLOAT, onnx.helper
    tensors, maker = ["x", "y"], dict[str, str]()
    nodes: list[Any] = []
    weights: list[Any] = []
    edges: list[tuple[str, str]] = []
    for i in range(int(rng.integers(3, 9))):
        kind = KINDS[int(rng.integers(len(KINDS)))]
        read = [tensors[int(rng.integers(max(0, len(tensors) - 3), len(tensors)))]]
        made = [f"t{i}"]
        given = read
        if kind == "MatMul":
            given = [*read, f"w{i}"]
            weights.append(onnx.numpy_helper.from_array(rng.random((4, 4), dtype=np.float32), f"w{i}"))
        elif kind == "Add" and rng.random() < 0.5:
            value = onnx.numpy_helper.from_array(rng.random((2, 4), dtype=np.float32))
            nodes.append(helper.make_node("Constant", [], [f"c{i}"], f"constant{i}", value=value))
            given = [*read, f"c{i}"]
        elif kind == "Add":
            read = given = [*read, tensors[int(rng.integers(len(tensors)))]]
        elif kind == "Split":
            made, given = [f"t{i}", f"u{i}"], [*read, "halves"]
        nodes.append(
            helper.make_node(kind, given, made, f"node{i}", **({"axis": 1} if kind == "Split" else {}))
        )
        if kind == "Split":
            nodes.append(helper.make_node("Concat", [made[1], made[0]], [f"v{i}"], f"join{i}", axis=1))
        edges += [(maker[name], f"node{i}") for name in dict.fromkeys(read) if name in maker]
        if kind == "Split":
            edges.append((f"node{i}", f"join{i}"))
            maker[f"v{i}"] = f"join{i}"
            tensors.append(f"v{i}")
        else:
            maker[f"t{i}"] = f"node{i}"
            tensors.append(f"t{i}")
    weights.append(onnx.numpy_helper.from_array(np.array([2, 2]), "halves"))
    names = [node.name for node in nodes if node.op_type != "Constant"]
    read_by_some = {name for node in nodes for name in node.input}
    ends = [name for name in maker if name not in read_by_some]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info(name, float_type, [2, 4]) for name in ("x", "y")],
        [
            helper.make_tensor_value_info(name, float_type, [2, 4])
            for name in dict.fromkeys((*ends, next(iter(maker))))
        ],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    return model, Graph.from_arrays({"gpu": [1.0] * len(names)}, edges, ids=names, names=names)


def outputs_of(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a model by name, computed by onnxruntime if it is here, else by onnx itself."""
    names = [each.name for each in model.graph.output]
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return dict(zip(names, ReferenceEvaluator(model).run(names, inputs), strict=True))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, inputs), strict=True))


def plan_of(seed: int, graph: Graph) -> tuple[Workload, Plan]:
    """A random plan: stages in order, or nodes anywhere."""
    rng = np.random.default_rng(seed)
    homes = rng.integers(0, 3, len(graph))
    homes = np.sort(homes) if seed % 2 else homes
    workload = Workload(graph, gpus(3))
    placement: dict[int | str, str] = {
        node: f"gpu{d}" for node, d in zip(graph.ids, homes.tolist(), strict=True)
    }
    blank = cuts(Workload(Graph.from_arrays({"gpu": [1.0]}, layer=["a"]), gpus(3)), 1)
    return workload, replace(
        blank, placement=placement, stages=(), hardware=workload.devices, workload_sha256=""
    )


def test_pieces_compute_what_the_model_does(tmp_path: Path) -> None:
    several = 0
    for seed in range(40):
        model, graph = random_model(seed)
        workload, plan = plan_of(seed, graph)
        onnx.save(model, tmp_path / "model.onnx")
        pieces = write_pieces(workload, plan, tmp_path / "model.onnx", tmp_path)
        several += len(pieces) > 2
        rng = np.random.default_rng(seed)
        given = {name: rng.random((2, 4), dtype=np.float32) - 0.5 for name in ("x", "y")}
        known, seen = dict(given), set()
        for piece in pieces:
            loaded = onnx.load(piece.path)
            onnx.checker.check_model(loaded)
            assert [each.name for each in loaded.graph.input] == list(piece.inputs)
            seen |= {node.name for node in loaded.graph.node if node.op_type != "Constant"}
            known |= outputs_of(loaded, {name: known[name] for name in piece.inputs})
        for name, value in outputs_of(model, given).items():
            assert np.array_equal(known[name], value)
    assert several > 10


def small(tmp_path: Path) -> tuple[Workload, Plan, Path]:
    """The chain a -> b on two devices."""
    helper, info = onnx.helper, onnx.helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["x"], ["t"], "a"), helper.make_node("Relu", ["t"], ["z"], "b")]
    ends = [info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "z")]
    model = helper.make_model(helper.make_graph(nodes, "small", ends[:1], ends[1:]))
    onnx.save(model, tmp_path / "model.onnx")
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)], names=["a", "b"], layer=["a", "b"])
    workload = Workload(graph, gpus(2))
    return workload, cuts(workload, 1, 1), tmp_path / "model.onnx"


def test_pieces_name_their_tensors_and_devices(tmp_path: Path) -> None:
    workload, plan, model = small(tmp_path)
    one, other = write_pieces(workload, plan, model, tmp_path)
    assert (one.device, one.inputs, one.outputs) == ("gpu0", ("x",), ("t",))
    assert (other.device, other.inputs, other.outputs) == ("gpu1", ("t",), ("z",))
    assert [one.path.name, other.path.name] == ["stage0.onnx", "stage1.onnx"]


def test_pieces_compute_masks_themselves(tmp_path: Path) -> None:
    """What depends on inputs alone is in each piece that reads it, where the plan says so."""
    helper, info = onnx.helper, onnx.helper.make_tensor_value_info
    rng, float_type = np.random.default_rng(0), onnx.TensorProto.FLOAT
    weights = [onnx.numpy_helper.from_array(rng.random((4, 4), dtype=np.float32), f"w{i}") for i in range(2)]
    rows = [
        ("Relu", ["y"], "small"), ("Neg", ["small"], "mask"), ("MatMul", ["x", "w0"], "a"),
        ("Add", ["a", "mask"], "b"), ("MatMul", ["b", "w1"], "c"), ("Add", ["c", "mask"], "z"),
    ]  # fmt: skip
    nodes = [helper.make_node(kind, read, [made], f"node {made}") for kind, read, made in rows]
    ends = [info(name, float_type, [2, 4]) for name in ("x", "y", "z")]
    opset = [helper.make_opsetid("", 20)]
    model = helper.make_model(
        helper.make_graph(nodes, "masked", ends[:2], ends[2:], weights), opset_imports=opset, ir_version=10
    )
    onnx.save(model, tmp_path / "model.onnx")
    made = [row[2] for row in rows]
    edges = [(one, to) for _, read, to in rows for one in read if one in made]
    time, held = [0.1, 0.1, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    names = [f"node {one}" for one in made]
    graph = Graph.from_arrays({"gpu": time}, edges, 0.5, ids=made, names=names, parameters=held)
    workload = Workload(graph, gpus(2))
    given = {name: rng.random((2, 4), dtype=np.float32) - 0.5 for name in ("x", "y")}
    expected = outputs_of(model, given)
    for choice, sent in (("sent", ("b", "mask")), ("copied", ("b",))):
        plan = solve(graph, workload.devices, input_operators=choice)
        first, second = write_pieces(workload, plan, tmp_path / "model.onnx", tmp_path)
        assert first.outputs == sent and ("y" in second.inputs) == (choice == "copied")
        known = dict(given)
        for piece in (first, second):
            known |= outputs_of(onnx.load(piece.path), {name: known[name] for name in piece.inputs})
        assert np.array_equal(known["z"], expected["z"])
        (_, listed) = json.loads(export(workload, plan, "onnx"))["stages"]
        assert ("node mask" in listed["inputs"]) == (choice == "sent")


def test_a_node_that_the_workload_lacks_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    workload, _, model = small(tmp_path)
    graph = Graph.from_arrays({"gpu": [1.0]}, names=["a"], layer=["a"])
    lacking = Workload(graph, workload.devices)
    with pytest.raises(WorkloadError, match=r"node 'b': Relu: must have the title of a node of the workload"):
        write_pieces(lacking, planned(lacking, {"a": "gpu0"}), model, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_control_flow_is_refused(tmp_path: Path) -> None:
    helper, info = onnx.helper, onnx.helper.make_tensor_value_info
    ends = [info(name, onnx.TensorProto.FLOAT, [1]) for name in ("z", "v")]
    value = onnx.numpy_helper.from_array(np.zeros(1, dtype=np.float32))
    body = helper.make_graph([helper.make_node("Constant", [], ["v"], value=value)], "body", [], ends[1:])
    node = helper.make_node("If", ["x"], ["z"], "a", then_branch=body, else_branch=body)
    given = [info("x", onnx.TensorProto.BOOL, [1])]
    onnx.save(helper.make_model(helper.make_graph([node], "flow", given, ends[:1])), tmp_path / "flow.onnx")
    graph = Graph.from_arrays({"gpu": [1.0]}, names=["a"], layer=["a"])
    workload = Workload(graph, gpus(1))
    with pytest.raises(WorkloadError, match=r"flow\.onnx: node 'a': If: has a body of its own"):
        write_pieces(workload, planned(workload, {"a": "gpu0"}), tmp_path / "flow.onnx", tmp_path)


def test_a_stage_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    workload, plan, path = small(tmp_path)
    model = onnx.load(path)
    model.graph.node[1].input[0] = "x"
    onnx.save(model, path)
    with pytest.raises(WorkloadError, match=r"stage 0: on gpu0: has no outputs"):
        write_pieces(workload, plan, path, tmp_path)


def test_a_module_may_be_cut(tmp_path: Path) -> None:
    """The pieces are those of two modules."""
    workload, plan, model = small(tmp_path)
    expected = write_pieces(workload, plan, model, tmp_path)
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)], names=["a", "b"], layer=["m", "m"])
    one_module = Workload(graph, workload.devices)
    torn = replace(plan, placement={0: "gpu0", 1: "gpu1"})
    assert write_pieces(one_module, torn, model, tmp_path) == expected


@pytest.mark.parametrize("content", [b"", b"no model", bytes(range(256))])
def test_a_file_that_is_no_model_is_named(tmp_path: Path, content: bytes) -> None:
    workload, plan, model = small(tmp_path)
    model.write_bytes(content)
    with pytest.raises(WorkloadError, match=r"model\.onnx: "):
        write_pieces(workload, plan, model, tmp_path)
    with pytest.raises(WorkloadError, match="none: file: cannot be read as an ONNX model: "):
        write_pieces(workload, plan, tmp_path / "none", tmp_path)


def test_without_onnx_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload, plan, model = small(tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(BackendUnavailable, match=r'need onnx: pip install "dnn-partitioner\[onnx\]"'):
        write_pieces(workload, plan, model, tmp_path)
