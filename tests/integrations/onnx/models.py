"""Small ONNX models whose costs are known by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="onnx is missing: pip install 'dnn-partitioner[onnx]'")
FLOAT, INT64 = 1, 7
Shape = Sequence[int | str | None]


def node(kind: str, reads: str, makes: str, name: str = "", **attributes: Any) -> Any:
    """A node that reads and makes tensors whose names are separated by spaces."""
    return onnx.helper.make_node(kind, reads.split(), makes.split(), name, **attributes)


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, tuple[int, Shape]],
    outputs: Mapping[str, Shape],
    weights: Mapping[str, Any],
) -> Any:
    """A checked model; weights are shapes of random numbers, or arrays."""
    rng = np.random.default_rng(0)
    arrays = {
        name: each if isinstance(each, np.ndarray) else rng.random(each, dtype=np.float32) - 0.5
        for name, each in weights.items()
    }
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "model",
        [info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [info(name, FLOAT, shape) for name, shape in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(made)
    return made


def cnn(batch: int | str = 2) -> Any:
    """A network of convolutions with a residual and a skip over a smaller image; some nodes have no name."""
    nodes = [
        node("Conv", "x w1 b1", "c1", "conv1", pads=[1] * 4),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2", "c2", "conv2", pads=[1] * 4, group=2),
        node("Add", "c2 r1", "a2", "residual"),
        node("Conv", "a2 w3", "c3", "down", strides=[2, 2]),
        node("ConvTranspose", "c3 w4", "u4", "up", strides=[2, 2]),
        node("Constant", "", "axis", "unused", value_int=1),
        node("Concat", "u4 a2", "cat", "skip", axis=1),
        node("Split", "cat", "s1 s2", "split", num_outputs=2, axis=1),
        node("Mul", "s1 s2", "m", "gate"),
        node("GlobalAveragePool", "m", "g", "pool"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w5 b5", "y", "head", transB=1),
    ]
    weights = {
        "w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 4, 3, 3), "w3": (16, 8, 2, 2), "w4": (16, 8, 2, 2),
        "w5": (10, 8), "b5": (10,),
    }  # fmt: skip
    return model_of(nodes, {"x": (FLOAT, [batch, 3, 8, 8])}, {"y": [batch, 10]}, weights)


CNN_FLOPS = {  # two for each weight that meets an output, of 2 images
    "conv1": 2 * 2 * 8 * 8 * 8 * 27,
    "conv2": 2 * 2 * 8 * 8 * 8 * 36,
    "down": 2 * 2 * 16 * 4 * 4 * 32,
    "up": 2 * 2 * 16 * 4 * 4 * 32,
    "head": 2 * 2 * 10 * 8,
}


def tied_network() -> Any:
    """Two products with one matrix, transposed for the second one, of a batch of any size."""
    nodes = [
        node("MatMul", "x w", "a", "first"),
        node("Relu", "a", "b", "middle"),
        node("Transpose", "w", "t", "turned", perm=[1, 0]),
        node("MatMul", "b t", "y", "last"),
    ]
    return model_of(nodes, {"x": (FLOAT, ["batch", 4])}, {"y": ["batch", 4]}, {"w": (4, 6)})


def halved() -> Any:
    """The sum of the halves of each row, where nodes compute where to cut."""
    nodes = [
        node("Relu", "x", "r", "relu"),
        node("Shape", "r", "s", "shape"),
        node("Gather", "s one", "n", "last", axis=0),
        node("Div", "n two", "half", "half"),
        node("Slice", "r zero half one", "left", "left"),
        node("Slice", "r half n one", "right", "right"),
        node("Add", "left right", "y", "sum"),
    ]
    numbers = {name: np.array([i]) for i, name in enumerate(("zero", "one", "two"))}
    return model_of(nodes, {"x": (FLOAT, ["batch", 6])}, {"y": ["batch", None]}, numbers)


def transformer(blocks: int = 2, hidden: int = 8, heads: int = 2, words: int = 20) -> Any:
    """A transformer named as torch's exporter names nodes, with an embedding that the head uses, too."""
    nodes, width = [node("Gather", "embed.weight ids", "x0", "/embed/Gather")], hidden // heads
    weights: dict[str, Any] = {"embed.weight": (words, hidden), "split": np.array([0, 0, heads, width])}
    weights |= {"join": np.array([0, 0, hidden]), "scale": np.array(width**-0.5, dtype=np.float32)}
    for i in range(blocks):
        here, own = f"/layers.{i}", f"layers.{i}"
        for part, shape in (("q", 1), ("k", 1), ("v", 1), ("o", 1), ("up", 4)):
            weights[f"{own}.{part}"] = (hidden, shape * hidden)
        weights |= {f"{own}.down": (4 * hidden, hidden), f"{own}.n1": (hidden,), f"{own}.n2": (hidden,)}
        nodes.append(node("LayerNormalization", f"x{i} {own}.n1", f"n{i}", f"{here}/n1/Norm"))
        for part in "qkv":
            order = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
            nodes += [
                node("MatMul", f"n{i} {own}.{part}", f"{part}{i}", f"{here}/attn/{part}/MatMul"),
                node("Reshape", f"{part}{i} split", f"{part}r{i}", f"{here}/attn/Reshape_{part}"),
                node("Transpose", f"{part}r{i}", f"{part}t{i}", f"{here}/attn/Turn_{part}", perm=order),
            ]
        nodes += [
            node("MatMul", f"qt{i} kt{i}", f"s{i}", f"{here}/attn/MatMul"),
            node("Mul", f"s{i} scale", f"m{i}", f"{here}/attn/Mul"),
            node("Softmax", f"m{i}", f"p{i}", f"{here}/attn/Softmax"),
            node("MatMul", f"p{i} vt{i}", f"c{i}", f"{here}/attn/MatMul_1"),
            node("Transpose", f"c{i}", f"ct{i}", f"{here}/attn/Turn", perm=[0, 2, 1, 3]),
            node("Reshape", f"ct{i} join", f"cr{i}", f"{here}/attn/Reshape"),
            node("MatMul", f"cr{i} {own}.o", f"o{i}", f"{here}/attn/o/MatMul"),
            node("Add", f"x{i} o{i}", f"h{i}", f"{here}/Add"),
            node("LayerNormalization", f"h{i} {own}.n2", f"l{i}", f"{here}/n2/Norm"),
            node("MatMul", f"l{i} {own}.up", f"u{i}", f"{here}/mlp/up/MatMul"),
            node("Relu", f"u{i}", f"g{i}", f"{here}/mlp/Relu"),
            node("MatMul", f"g{i} {own}.down", f"d{i}", f"{here}/mlp/down/MatMul"),
            node("Add", f"h{i} d{i}", f"x{i + 1}", f"{here}/Add_1"),
        ]
    nodes += [
        node("Transpose", "embed.weight", "turned", "/head/Transpose", perm=[1, 0]),
        node("MatMul", f"x{blocks} turned", "y", "/head/MatMul"),
    ]
    return model_of(nodes, {"ids": (INT64, ["batch", "time"])}, {"y": ["batch", "time", words]}, weights)


def weights_of(model: Any) -> dict[str, Any]:
    """The arrays of the initializers by name."""
    return {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
