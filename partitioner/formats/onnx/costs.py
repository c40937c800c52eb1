"""What each operator of an ONNX model computes and moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from partitioner.estimation.device_operations import AttentionScores, Product
from partitioner.estimation.operator_times import SizedPart
from partitioner.formats.onnx.operators import OnnxGraph, OnnxOperator
from partitioner.formats.onnx.tensors import OnnxTensor

VIEWS = frozenset(("Dropout", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze"))
LOOKUPS = frozenset(("Gather", "GatherElements", "GatherND", "Slice", "Split"))  # they read what they write


@dataclass(frozen=True)
class OperatorCost:
    """The costs of an operator for one sample.

    Parameters
    ----------
    flops
        Floating-point operations, None if there is no formula for the operator.
    dtype
        The type of numbers that it computes with, empty if devices have no speed for it.
    read, written
        Bytes that it reads from memory, weights included, and writes to it; 0 for views.
    activations
        Bytes of its inputs that are no constants, and of its outputs.
    parts
        The operations whose sizes are known, with these.
    """

    flops: float | None
    dtype: str
    read: float
    written: float
    activations: float
    parts: tuple[SizedPart, ...] = ()


def cost_of(operator: OnnxOperator, graph: OnnxGraph) -> OperatorCost:
    """Return the costs of an operator."""
    inputs = [graph.tensors.get(name) for name in operator.inputs]
    outputs = [graph.tensors.get(name) for name in operator.outputs]
    dtype = next((tensor.dtype for tensor in inputs if tensor is not None and tensor.dtype), "")
    if operator.operator in VIEWS:
        return OperatorCost(0.0, dtype, 0.0, 0.0, 0.0)
    written = _nbytes(graph, operator.outputs)
    if operator.operator in LOOKUPS:
        read = min(written, _nbytes(graph, operator.inputs[:1])) + _nbytes(graph, operator.inputs[1:])
    else:
        read = _nbytes(graph, operator.inputs)
    made = [name for name in operator.inputs if name not in graph.constants]
    parts = parts_of(operator.operator, inputs, outputs, operator.attributes)
    if operator.operator == "Einsum":
        flops = _einsum(inputs, operator.attributes)
    else:
        flops = None if parts is None else sum(part.flops for part in parts)
    return OperatorCost(flops, dtype, read, written, written + _nbytes(graph, made), parts or ())


def parameters_of(operator: OnnxOperator, graph: OnnxGraph) -> list[str]:
    """Return the names of the initializers and constants that an operator needs."""
    names = (graph.constants.get(name, frozenset()) for name in operator.inputs)
    return list(dict.fromkeys(root for roots in names for root in sorted(roots)))


def _nbytes(graph: OnnxGraph, names: Iterable[str]) -> float:
    """Return the bytes of tensors, each counted once."""
    found = (graph.tensors.get(name) for name in dict.fromkeys(names))
    return float(sum(tensor.nbytes for tensor in found if isinstance(tensor, OnnxTensor)))


# The products that an operator computes: of matrices, convolutions (one for each group), attention,
# recurrences.
#
# A multiplication with an addition counts as two operations, as in torch's counter; added biases do not.

Tensors = list[OnnxTensor | None]
Sizes = Callable[[Tensors, Tensors, Mapping[str, Any]], tuple[SizedPart, ...]]


def parts_of(
    operator: str, inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]
) -> tuple[SizedPart, ...] | None:
    """Return the products of an operator with their sizes, of which none is 0; None if no rule has them.

    Examples
    --------
    >>> one, other = OnnxTensor((2, 3), "float32", 24), OnnxTensor((3, 5), "float32", 60)
    >>> [part] = parts_of("MatMul", [one, other], [OnnxTensor((2, 5), "float32", 40)], {})
    >>> part.flops, part.sizes.m, part.sizes.n, part.sizes.k
    (60, 2, 5, 3)
    """
    rule = RULES.get(operator)
    found = None if rule is None else rule(inputs, outputs, attributes)
    return None if found is None else tuple(part for part in found if part.flops)


def _shape(tensors: Tensors, i: int) -> tuple[int, ...]:
    tensor = tensors[i] if i < len(tensors) else None
    return () if tensor is None else tensor.shape


def _one(m: int, n: int, k: int, count: int = 1, steps: int = 1) -> tuple[SizedPart, ...]:
    return (SizedPart(2 * m * n * k * count * steps, Product(m, n, k, count), steps),)


def _matmul(right: int) -> Sizes:
    """Return the rule for an operator whose second factor is this input."""

    def sizes(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> tuple[SizedPart, ...]:
        left, other, made = _shape(inputs, 0), _shape(inputs, right), _shape(outputs, 0)
        k, n = left[-1], other[-1] if len(other) > 1 else 1
        if not math.prod(made):
            return ()
        shared = math.prod(other[:-2]) == 1  # all rows meet the same matrix
        count = 1 if shared else math.prod(made[: len(made) - min(len(left), 2)])
        return _one(math.prod(made) // (n * count), n, k, count)

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


def _einsum(inputs: Tensors, attributes: Mapping[str, Any]) -> float | None:
    """Return the operations of a product over all letters, None for an equation with an ellipsis."""
    equation = attributes.get("equation", b"")
    terms = equation.decode().replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for i, term in enumerate(terms):
        if "." in term or len(term) != len(_shape(inputs, i)):
            return None
        sizes |= dict(zip(term, _shape(inputs, i), strict=True))
    return 2 * (len(terms) - 1) * math.prod(sizes.values())
