"""What each operator of an ONNX model computes and moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from partitioner.estimation.operator_times import SizedPart
from partitioner.formats.onnx.operators import OnnxGraph, OnnxOperator
from partitioner.formats.onnx.products import parts_of
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
    flops = flops_of(operator.operator, inputs, outputs, operator.attributes)
    dtype = next((tensor.dtype for tensor in inputs if tensor is not None and tensor.dtype), "")
    if operator.operator in VIEWS:
        return OperatorCost(0.0, dtype, 0.0, 0.0, 0.0)
    written = _nbytes(graph, operator.outputs)
    if operator.operator in LOOKUPS:
        read = min(written, _nbytes(graph, operator.inputs[:1])) + _nbytes(graph, operator.inputs[1:])
    else:
        read = _nbytes(graph, operator.inputs)
    made = [name for name in operator.inputs if name not in graph.constants]
    parts = parts_of(operator.operator, inputs, outputs, operator.attributes) if flops else ()
    return OperatorCost(flops, dtype, read, written, written + _nbytes(graph, made), parts)


def parameters_of(operator: OnnxOperator, graph: OnnxGraph) -> list[str]:
    """Return the names of the initializers and constants that an operator needs."""
    names = (graph.constants.get(name, frozenset()) for name in operator.inputs)
    return list(dict.fromkeys(root for roots in names for root in sorted(roots)))


def _nbytes(graph: OnnxGraph, names: Iterable[str]) -> float:
    """Return the bytes of tensors, each counted once."""
    found = (graph.tensors.get(name) for name in dict.fromkeys(names))
    return float(sum(tensor.nbytes for tensor in found if isinstance(tensor, OnnxTensor)))


# Floating-point operations of ONNX operators: products of matrices, convolutions, attention,
# recurrences.
#
# A multiplication with an addition counts as two, as in torch's counter; added biases do not count.

Tensors = list[OnnxTensor | None]
Formula = Callable[[Tensors, Tensors, Mapping[str, Any]], float | None]


def flops_of(operator: str, inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float | None:
    """Return the floating-point operations of a node, None for an operator without a formula.

    Examples
    --------
    >>> one, other = OnnxTensor((2, 3), "float32", 24), OnnxTensor((3, 5), "float32", 60)
    >>> flops_of("MatMul", [one, other], [OnnxTensor((2, 5), "float32", 40)], {})
    60
    """
    formula = FORMULAS.get(operator)
    return None if formula is None else formula(inputs, outputs, attributes)


def _count(tensors: Tensors, i: int) -> int:
    tensor = tensors[i] if i < len(tensors) else None
    return 0 if tensor is None else tensor.count


def _shape(tensors: Tensors, i: int) -> tuple[int, ...]:
    tensor = tensors[i] if i < len(tensors) else None
    return () if tensor is None else tensor.shape


def _product(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float:
    return 2 * _count(outputs, 0) * _shape(inputs, 0)[-1]


def _general_product(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float:
    return 2 * _count(outputs, 0) * _shape(inputs, 0)[0 if attributes.get("transA") else 1]


def _convolution(weight: int) -> Formula:
    """Return the formula for an operator with its weights at this input; their first axis is the output."""

    def formula(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float:
        return 2 * _count(outputs, 0) * math.prod(_shape(inputs, weight)[1:])

    return formula


def _transposed(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float:
    return 2 * _count(inputs, 0) * math.prod(_shape(inputs, 1)[1:])


def _attention(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float:
    """Return the operations of scores and weighted values, causal or not; cached keys come first."""
    batch, heads, steps, width = _by_head(_shape(inputs, 0), attributes.get("q_num_heads", 1))
    _, _, seen, per_value = _by_head(_shape(inputs, 2), attributes.get("kv_num_heads", 1))
    cached = _shape(inputs, 4)
    return 2 * batch * heads * steps * (seen + (cached[2] if cached else 0)) * (width + per_value)


def _by_head(shape: tuple[int, ...], heads: int) -> tuple[int, ...]:
    """Return batch, heads, steps and numbers of a head and step."""
    return shape if len(shape) == 4 else (shape[0], heads, shape[1], shape[2] // heads)


def _recurrence(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float:
    """Return the operations of the products with both matrices of weights, for all steps and sequences."""
    steps = math.prod(_shape(inputs, 0)[:2])
    return 2 * steps * (_count(inputs, 1) + _count(inputs, 2))


def _einsum(inputs: Tensors, outputs: Tensors, attributes: Mapping[str, Any]) -> float | None:
    """Return the operations of a product over all letters, None for an equation with an ellipsis."""
    equation = attributes.get("equation", b"")
    terms = equation.decode().replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for i, term in enumerate(terms):
        if "." in term or len(term) != len(_shape(inputs, i)):
            return None
        sizes |= dict(zip(term, _shape(inputs, i), strict=True))
    return 2 * (len(terms) - 1) * math.prod(sizes.values())


FORMULAS: Mapping[str, Formula] = {
    "MatMul": _product,
    "MatMulInteger": _product,
    "QLinearMatMul": _product,
    "Gemm": _general_product,
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed,
    "Attention": _attention,
    "Einsum": _einsum,
    "LSTM": _recurrence,
    "GRU": _recurrence,
    "RNN": _recurrence,
}
