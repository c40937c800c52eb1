"""A file that is no model, or a model that cannot be planned, is refused in words that name what is wrong."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import PartitionerError, WorkloadError, load
from partitioner.integrations.onnx import graph_of
from tests.integrations.onnx.models import FLOAT, INT64, cnn, halved, model_of, node, onnx, transformer

CASES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_or_refuse(path: Path) -> bool:
    """Whether a file is read; an error that is not one of the package fails the test."""
    try:
        graph_of(path, bandwidth=1e9, dims={"batch": 2, "time": 3})
    except PartitionerError as error:
        assert str(error)
        return False
    return True


@CASES
@given(content=st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert not read_or_refuse(path)


@pytest.mark.parametrize("cases", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_damaged_models_are_read_or_refused(tmp_path: Path, cases: int) -> None:
    rng, path = random.Random(cases), tmp_path / "model.onnx"
    whole = [each.SerializeToString() for each in (cnn("batch"), transformer(1), halved())]
    outcomes = set()
    for _ in range(cases):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        outcomes.add(read_or_refuse(path))
    assert outcomes == {True, False}


def test_a_file_that_is_missing_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        WorkloadError, match=r"none\.onnx: file: cannot be read as an ONNX model: FileNotFound"
    ):
        load(tmp_path / "none.onnx", bandwidth=1e9, accelerators=1)
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(WorkloadError, match=r"empty\.onnx: file: graph: must have nodes"):
        load(tmp_path / "empty.onnx", bandwidth=1e9, accelerators=1)
    with pytest.raises(WorkloadError, match=r"model: 7: must be a path or an onnx\.ModelProto"):
        graph_of(7)


def test_every_dimension_without_a_size_is_named() -> None:
    words = (
        r"input ids: dimension batch: has no size; give one as dims={'batch': ...} \(--dims batch=N\)\n"
        r".*dimension time: has no"
    )
    with pytest.raises(WorkloadError, match=words):
        graph_of(transformer(), bandwidth=1e9)
    one = node("Relu", "x", "y")
    unnamed = model_of([one], {"x": (FLOAT, [None, 4])}, {"y": [None, 4]}, {})
    with pytest.raises(WorkloadError, match=r"input x: dimension x\.0: has no size"):
        graph_of(unnamed, bandwidth=1e9)
    assert graph_of(unnamed, dims={"x.0": 3}).extras.nodes[0]["bytesIn"] == 48


def test_a_tensor_whose_shape_depends_on_data_is_named() -> None:
    nodes = [node("NonZero", "x", "found", "search"), node("Cast", "found", "y", "cast", to=FLOAT)]
    model = model_of(nodes, {"x": (FLOAT, [3])}, {"y": [1, None]}, {})
    with pytest.raises(WorkloadError, match="node 'search': tensor found: has no shape that onnx can infer"):
        graph_of(model, bandwidth=1e9)


def test_shapes_that_contradict_each_other_are_refused() -> None:
    nodes = [node("MatMul", "x w", "y", "product")]
    model = model_of(nodes, {"x": (FLOAT, [3, 4])}, {"y": [3, 2]}, {"w": (5, 2)})
    with pytest.raises(WorkloadError, match=r"cannot be read as an ONNX model: InferenceError: .*product"):
        graph_of(model, bandwidth=1e9)


def test_control_flow_is_refused() -> None:
    info = onnx.helper.make_tensor_value_info
    value = onnx.numpy_helper.from_array(np.zeros(1, np.float32))
    constant = onnx.helper.make_node("Constant", [], ["v"], value=value)
    body = onnx.helper.make_graph([constant], "body", [], [info("v", FLOAT, [1])])
    branch = node("If", "x", "y", "branch", then_branch=body, else_branch=body)
    model = model_of([branch], {"x": (9, [1])}, {"y": [1]}, {})
    with pytest.raises(WorkloadError, match="node branch: If: has a body of its own"):
        graph_of(model, bandwidth=1e9)


def test_a_large_tensor_is_not_computed_for_the_sake_of_shapes() -> None:
    """Filling it would take a terabyte; its shape is known, that of what is found in it is not."""
    nodes = [
        node("ConstantOfShape", "sizes", "large", "fill"),
        node("NonZero", "large", "found", "search"),
        node("Shape", "found", "s", "shape"),
        node("Expand", "x s", "y", "expand"),
    ]
    sizes = {"sizes": np.array([10**6, 10**6])}
    model = model_of(nodes, {"x": (FLOAT, [1, 1])}, {"y": [None, None]}, sizes)
    with pytest.raises(WorkloadError, match="node 'expand': tensor y: has no shape that onnx can infer"):
        graph_of(model, bandwidth=1e9)


def test_a_model_of_constants_alone_is_refused() -> None:
    model = model_of([node("Relu", "w", "y")], {"x": (INT64, [1])}, {"y": [2]}, {"w": (2,)})
    with pytest.raises(WorkloadError, match="must have a node that reads an input"):
        graph_of(model, bandwidth=1e9)


def test_nodes_of_equal_names_are_named() -> None:
    nodes = [node("Relu", "x", "t", "same"), node("Relu", "t", "y", "same")]
    with pytest.raises(WorkloadError, match="same"):
        graph_of(model_of(nodes, {"x": (FLOAT, [1])}, {"y": [1]}, {}), bandwidth=1e9)


def constant(name: str, value: int | list[int]) -> Any:
    dims = [] if isinstance(value, int) else [len(value)]
    numbers = [value] if isinstance(value, int) else value
    return node("Constant", "", name, value=onnx.helper.make_tensor(name, INT64, dims, numbers))


def test_a_model_made_to_take_all_memory_is_refused(tmp_path: Path) -> None:
    """Onnx follows the values of shapes, here those of six hundred million numbers."""
    nodes = [
        *(
            constant("a", 0),
            constant("b", 600_000_000),
            constant("c", 1),
            constant("i", 3),
            constant("d", [0]),
        ),
        node("Range", "a b c", "numbers"),
        node("Gather", "numbers i", "one"),
        node("Unsqueeze", "one d", "shape"),
        node("Reshape", "x shape", "y"),
    ]
    model = model_of(nodes, {"x": (FLOAT, [3])}, {"y": ["size"]}, {})
    onnx.save(model, tmp_path / "greedy.onnx")
    with pytest.raises(WorkloadError, match=r"greedy\.onnx: file: cannot be read as an ONNX model"):
        load(tmp_path / "greedy.onnx", bandwidth=1e9, accelerators=1)


def test_negative_sizes_are_refused_before_onnx_sees_them(tmp_path: Path) -> None:
    """With such a size, a slice that goes backwards ended the process inside onnx."""
    model = model_of(
        [
            *(constant("from", [-1]), constant("to", [-9999]), constant("axis", [0]), constant("step", [-1])),
            node("Slice", "x from to axis step", "y"),
        ],
        {"x": (FLOAT, [3, 4])},
        {"y": ["rows", 4]},
        {},
    )
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -3
    onnx.save(model, tmp_path / "negative.onnx")
    with pytest.raises(WorkloadError, match=r"tensor 'x': dims = \[-3, 4\]: no size must be negative"):
        load(tmp_path / "negative.onnx", bandwidth=1e9, accelerators=1)


def test_an_end_of_the_process_inside_onnx_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partitioner.formats.onnx.shapes.sys.executable", "/bin/false")
    onnx.save(cnn("batch"), tmp_path / "model.onnx")
    with pytest.raises(WorkloadError, match=r"onnx does not find the shapes of its tensors within"):
        load(tmp_path / "model.onnx", bandwidth=1e9, accelerators=1, dims={"batch": 2})
