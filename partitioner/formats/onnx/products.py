"""The sizes of the products that an ONNX operator computes; a convolution is one for each group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from partitioner.estimation.device_operations import AttentionScores, Product
from partitioner.estimation.operator_times import SizedPart
from partitioner.formats.onnx.tensors import OnnxTensor

Tensors = list[OnnxTensor | None]
Sizes = Callable[[Tensors, Tensors, Mapping[str, Any]], tuple[SizedPart, ...]]


def parts_of(
    operator: str, inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]
) -> tuple[SizedPart, ...]:
    """Return the products of an operator with their sizes, of which none may be 0; none if no rule has them.

    Examples
    --------
    >>> one, other = OnnxTensor((2, 3), "float32", 24), OnnxTensor((3, 5), "float32", 60)
    >>> [part] = parts_of("MatMul", [one, other], [OnnxTensor((2, 5), "float32", 40)], {})
    >>> part.flops, part.sizes.m, part.sizes.n, part.sizes.k
    (60, 2, 5, 3)
    """
    rule = RULES.get(operator)
    found = () if rule is None else rule(inputs, outputs, attributes)
    return tuple(part for part in found if part.flops)


def _shape(tensors: Tensors, i: int) -> tuple[int, ...]:
    tensor = tensors[i] if i < len(tensors) else None
    return () if tensor is None else tensor.shape


def _one(m: int, n: int, k: int, count: int = 1, steps: int = 1) -> tuple[SizedPart, ...]:
    return (SizedPart(2 * m * n * k * count * steps, Product(m, n, k, count), steps),)


def _matmul(right: int) -> Sizes:
    """Return the rule for an operator whose second factor is this input."""

    def sizes(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
        left, other, made = _shape(inputs, 0), _shape(inputs, right), _shape(outputs, 0)
        if len(left) == 1 or len(other) == 1 or not math.prod(made):
            return ()
        k, n = left[-1], other[-1]
        shared = math.prod(other[:-2]) == 1  # all rows meet the same matrix
        rows = math.prod(made) // n
        count = 1 if shared else math.prod(made[:-2])
        return _one(rows // count, n, k, count)

    return sizes


def _general(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
    (m, n), left = _shape(outputs, 0), _shape(inputs, 0)
    return _one(m, n, left[0 if attributes.get("transA") else 1])


def _convolution(weight: int) -> Sizes:
    """Return the rule for an operator with its weights at this input: outputs, inputs of a group, kernel."""

    def sizes(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
        kernel, made = _shape(inputs, weight), _shape(outputs, 0)
        groups = attributes.get("group", 1)
        return _one(made[0] * math.prod(made[2:]), kernel[0] // groups, math.prod(kernel[1:]), groups)

    return sizes


def _transposed(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
    read, kernel = _shape(inputs, 0), _shape(inputs, 1)
    groups = attributes.get("group", 1)
    return _one(read[0] * math.prod(read[2:]), math.prod(kernel[1:]), kernel[0] // groups, groups)


def _attention(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
    q, k, v, cached = (_shape(inputs, i) for i in (0, 1, 2, 4))
    heads, kv_heads = (
        shape[1] if len(shape) == 4 else attributes.get(name, 1)
        for shape, name in ((q, "q_num_heads"), (k, "kv_num_heads"))
    )
    steps, context = q[-2], cached[2] if cached else 0
    key, value = (
        shape[3] if len(shape) == 4 else shape[2] // count for shape, count in ((k, kv_heads), (v, kv_heads))
    )
    scores = AttentionScores(q[0], steps, context, heads, kv_heads, key, value)
    return (SizedPart(2 * q[0] * heads * steps * (v[-2] + context) * (key + value), scores),)


def _recurrence(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
    """Return the products of gates: with the inputs of all steps at once, and with the state step by step."""
    steps, batch = _shape(inputs, 0)[:2]
    (ways, rows, inner), states = _shape(inputs, 1), _shape(inputs, 2)
    return (*_one(steps * batch, rows, inner, ways), *_one(batch, rows, states[2], ways, steps))


RULES: Mapping[str, Sizes] = {
    **{"MatMul": _matmul(1), "MatMulInteger": _matmul(1), "QLinearMatMul": _matmul(3)},
    "Gemm": _general,
    **{"Conv": _convolution(1), "ConvInteger": _convolution(1), "QLinearConv": _convolution(3)},
    "ConvTranspose": _transposed,
    "Attention": _attention,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrence),
}
