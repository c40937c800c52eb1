"""What each operator of an ONNX model computes and moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partitioner.formats.onnx.flops import flops_of
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
    """

    flops: float | None
    dtype: str
    read: float
    written: float
    activations: float


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
    return OperatorCost(flops, dtype, read, written, written + _nbytes(graph, made))


def parameters_of(operator: OnnxOperator, graph: OnnxGraph) -> list[str]:
    """Return the names of the initializers and constants that an operator needs."""
    names = (graph.constants.get(name, frozenset()) for name in operator.inputs)
    return list(dict.fromkeys(root for roots in names for root in sorted(roots)))


def _nbytes(graph: OnnxGraph, names: Iterable[str]) -> float:
    """Return the bytes of tensors, each counted once."""
    found = (graph.tensors.get(name) for name in dict.fromkeys(names))
    return float(sum(tensor.nbytes for tensor in found if isinstance(tensor, OnnxTensor)))
