"""The formulas count what a loop over multiplications with additions counts, on nodes of random shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from partitioner.estimation.device_operations import Product
from partitioner.formats.onnx.costs import parts_of
from partitioner.formats.onnx.tensors import OnnxTensor
from partitioner.integrations.onnx import graph_of
from tests.integrations.onnx.models import FLOAT, Shape, model_of, node, onnx


def counted(one: Any, inputs: Mapping[str, Sequence[int]], makes: Mapping[str, Shape]) -> Any:
    """The operations of a node that reads inputs of these shapes, None without a formula."""
    given: dict[str, tuple[int, Shape]] = {name: (FLOAT, list(shape)) for name, shape in inputs.items()}
    graph = graph_of(model_of([one], given, makes, {}), bandwidth=1e9)
    if graph.extras.top["operatorsWithoutFlops"]:
        return None
    return graph.extras.nodes[0]["flops"]


@pytest.mark.parametrize("seed", range(12))
def test_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, m, k, n = rng.integers(1, 6, 4).tolist()
    steps = len(list(product(range(b), range(m), range(n), range(k))))
    assert counted(node("MatMul", "x w", "y"), {"x": (b, m, k), "w": (k, n)}, {"y": [b, m, n]}) == 2 * steps
    assert counted(node("MatMul", "x w", "y"), {"x": (m, k), "w": (b, k, n)}, {"y": [b, m, n]}) == 2 * steps
    flat = 2 * steps // b
    for turned, shape in ((0, (m, k)), (1, (k, m))):
        one = node("Gemm", "x w c", "y", transA=turned)
        assert counted(one, {"x": shape, "w": (k, n), "c": (n,)}, {"y": [m, n]}) == flat
    one = node("Einsum", "x w", "y", equation="bij, bjk -> bik")
    assert counted(one, {"x": (b, m, k), "w": (b, k, n)}, {"y": [b, m, n]}) == 2 * steps


@pytest.mark.parametrize("seed", range(12))
def test_convolutions_multiply_each_input_of_a_window(seed: int) -> None:
    """Without padding, every output meets a weight for each channel of its group and place in the kernel."""
    rng = np.random.default_rng(seed)
    groups, batch, stride = (int(each) for each in rng.integers(1, 4, 3))
    inner, outer = (groups * int(each) for each in rng.integers(1, 4, 2))
    height, width, kernel = 7, 6, int(rng.integers(1, 4))
    starts = [len(range(0, length - kernel + 1, stride)) for length in (height, width)]
    meets = batch * outer * starts[0] * starts[1] * (inner // groups) * kernel**2
    one = node("Conv", "x w", "y", group=groups, strides=[stride] * 2)
    shapes = {"x": (batch, inner, height, width), "w": (outer, inner // groups, kernel, kernel)}
    assert counted(one, shapes, {"y": [batch, outer, *starts]}) == 2 * meets
    back = node("ConvTranspose", "x w", "y", group=groups, strides=[stride] * 2)
    made = [(length - 1) * stride + kernel for length in starts]
    turned = {"x": (batch, outer, *starts), "w": (outer, inner // groups, kernel, kernel)}
    assert counted(back, turned, {"y": [batch, inner, *made]}) == 2 * meets  # the same pairs, the other way


def attention(inputs: Mapping[str, Sequence[int]], made: Shape, names: str, **attributes: int) -> Any:
    """The operations of the operator Attention of opset 23."""
    info = onnx.helper.make_tensor_value_info
    one = node("Attention", names, "y", "attention", **attributes)
    given = [info(name, FLOAT, shape) for name, shape in inputs.items()]
    graph = onnx.helper.make_graph([one], "model", given, [info("y", FLOAT, made)])
    opset = [onnx.helper.make_opsetid("", 23)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=10)
    return graph_of(model, bandwidth=1e9).extras.nodes[0]["flops"]


def test_attention_counts_all_pairs_of_queries_and_keys() -> None:
    batch, heads, steps, seen, width = 2, 4, 3, 5, 8
    expected = 2 * 2 * batch * heads * steps * seen * width
    wide = {"q": (2, 3, 32), "k": (2, 5, 32), "v": (2, 5, 32)}
    assert attention(wide, [2, 3, 32], "q k v", q_num_heads=4, kv_num_heads=4) == expected
    grouped = {"q": (2, 3, 32), "k": (2, 5, 16), "v": (2, 5, 16)}
    assert attention(grouped, [2, 3, 32], "q k v", q_num_heads=4, kv_num_heads=2) == expected
    split = {"q": (2, 4, 3, 8), "k": (2, 4, 5, 8), "v": (2, 4, 5, 8)}
    assert attention(split, [2, 4, 3, 8], "q k v") == expected


def test_recurrences_count_both_matrices_for_every_step() -> None:
    steps, batch, inner, hidden = 4, 3, 5, 6
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        shapes = {
            "x": (steps, batch, inner),
            "w": (1, gates * hidden, inner),
            "r": (1, gates * hidden, hidden),
        }
        one = node(kind, "x w r", "y", hidden_size=hidden)
        expected = 2 * steps * batch * gates * hidden * (inner + hidden)
        assert counted(one, shapes, {"y": [steps, 1, batch, hidden]}) == expected


def test_what_has_no_formula_is_not_counted() -> None:
    assert counted(node("Softmax", "x", "y"), {"x": (2, 3)}, {"y": [2, 3]}) is None
    one = node("Einsum", "x w", "y", equation="...ij,jk->...ik")
    assert counted(one, {"x": (2, 3, 4), "w": (4, 5)}, {"y": [2, 3, 5]}) is None


@pytest.mark.parametrize("seed", range(300))
def test_the_sizes_of_products_give_their_operations(seed: int) -> None:
    """On tensors of random shapes, against the sizes by hand."""
    rng = np.random.default_rng(seed)
    b, m, k, n, groups, steps = rng.integers(1, 40, 6).tolist()
    kernel = int(rng.integers(1, 4))

    def tensor(*shape: int) -> OnnxTensor:
        return OnnxTensor(shape, "float32", 4 * math.prod(shape))

    def parts(
        kind: str, inputs: list[OnnxTensor | None], made: OnnxTensor, **more: int
    ) -> list[tuple[float, ...]]:
        found: list[tuple[float, ...]] = []
        for part in parts_of(kind, inputs, [made], more) or ():
            sizes = part.sizes
            assert isinstance(sizes, Product)
            assert part.flops == 2 * sizes.m * sizes.n * sizes.k * sizes.count * part.steps
            found.append((sizes.m, sizes.n, sizes.k, sizes.count, part.steps))
        return found

    assert parts("MatMul", [tensor(b, m, k), tensor(k, n)], tensor(b, m, n)) == [(b * m, n, k, 1, 1)]
    assert parts("MatMul", [tensor(b, m, k), tensor(b, k, n)], tensor(b, m, n)) == [
        (m, n, k, b if b > 1 else 1, 1)
    ]
    assert parts("MatMul", [tensor(k), tensor(k, n)], tensor(n)) == [(1, n, k, 1, 1)]
    assert parts("MatMul", [tensor(b, m, k), tensor(k)], tensor(b, m)) == [(b * m, 1, k, 1, 1)]
    assert parts("MatMul", [tensor(k), tensor(b, k, n)], tensor(b, n)) == [(1, n, k, b, 1)]
    assert parts("Gemm", [tensor(k, m), tensor(k, n)], tensor(m, n), transA=1) == [(m, n, k, 1, 1)]
    weight = tensor(n * groups, k, kernel, kernel)
    image, made = tensor(b, k * groups, 9, 9), tensor(b, n * groups, m, 5)
    assert parts("Conv", [image, weight], made, group=groups) == [(b * m * 5, n, k * kernel**2, groups, 1)]
    turned = tensor(k * groups, n, kernel, kernel)
    made = tensor(b, n * groups, 30, 30)
    assert parts("ConvTranspose", [image, turned], made, group=groups) == [
        (b * 81, n * kernel**2, k, groups, 1)
    ]
    given: list[OnnxTensor | None] = [tensor(steps, b, m), tensor(1, 4 * n, m), tensor(1, 4 * n, n)]
    assert parts("LSTM", given, tensor(steps, 1, b, n)) == [
        (steps * b, 4 * n, m, 1, 1),
        (b, 4 * n, n, 1, steps),
    ]
