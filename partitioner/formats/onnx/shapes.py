"""Shapes of all tensors of an ONNX model, also where shapes are computed by nodes from other shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.formats.onnx.model_file import has_body, onnx_module, refuse
from partitioner.formats.onnx.tensors import sized

MOST_NUMBERS = 256  # of a tensor whose value is followed; those of shapes are small
Values = dict[str, NDArray[Any]]


def with_shapes(model: Any, source: str) -> Any:
    """Return the graph of a model with the types of its tensors.

    Where onnx alone does not find a shape, nodes that compute with known shapes are replaced by what they
    compute, until this helps no more; so nodes of the result are not those of the model.

    Raises
    ------
    WorkloadError
        If the model is not sound, or its shapes contradict each other.
    """
    onnx = onnx_module()
    infer_shapes = onnx_module("onnx.shape_inference").infer_shapes
    try:
        onnx.checker.check_model(model)
        while True:
            found = infer_shapes(model, strict_mode=True, data_prop=True)
            shapes = _shapes(found.graph)
            if all(name in shapes for node in model.graph.node for name in node.output if name):
                return found.graph
            replaced = _with_constants(model, shapes)
            if replaced is None:
                return found.graph
            model = replaced
    except Exception as error:  # onnx raises errors of protobuf and of its own
        refuse(error, source)


def _shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes that are known, by the name of the tensor."""
    found = {each.name: sized(each) for each in (*graph.input, *graph.value_info, *graph.output)}
    return {name: shape for name, shape in found.items() if shape is not None}


def _with_constants(model: Any, shapes: Mapping[str, tuple[int, ...]]) -> Any | None:
    """Return the model with constants in place of nodes that compute from shapes; None if there are none."""
    onnx = onnx_module()
    arrays = onnx.numpy_helper
    values: Values = {each.name: arrays.to_array(each) for each in model.graph.initializer}
    nodes, changed = [], False
    for node in model.graph.node:
        made = _value(node, values, shapes, model.opset_import)
        if made is not None and node.op_type != "Constant":
            changed = True
            tensor = arrays.from_array(made, node.output[0])
            node = onnx.helper.make_node("Constant", [], [node.output[0]], node.name, value=tensor)
        if made is not None:
            values[node.output[0]] = made
        nodes.append(node)
    if not changed:
        return None
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _value(
    node: Any, values: Values, shapes: Mapping[str, tuple[int, ...]], opsets: Any
) -> NDArray[Any] | None:
    """Return the value of a node with one output, None if it is not known or not small."""
    if len(node.output) != 1 or has_body(node) or node.op_type.startswith("Random"):
        return None
    if node.op_type == "Shape" and node.input[0] in shapes:
        limits = {each.name: each.i for each in node.attribute}
        return np.array(shapes[node.input[0]][limits.get("start") : limits.get("end")], dtype=np.int64)
    read = [name for name in node.input if name]
    small = math.prod(shapes.get(node.output[0], (math.inf,))) <= MOST_NUMBERS
    if not small or not values.keys() >= set(read):
        return None
    return _evaluated(node, {name: values[name] for name in read}, opsets)


def _evaluated(node: Any, inputs: Values, opsets: Any) -> NDArray[Any] | None:
    """Return what a node computes, None if onnx's evaluator does not know the operator."""
    onnx = onnx_module()
    graph = onnx.GraphProto(name="node", node=[node])
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in inputs)
    graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
    alone = onnx.ModelProto(ir_version=10, graph=graph, opset_import=opsets)
    try:
        (found,) = onnx_module("onnx.reference").ReferenceEvaluator(alone).run(None, inputs)
    except Exception:  # the evaluator raises any error; the shapes that depend on the node stay unknown
        return None
    return np.asarray(found) if isinstance(found, np.ndarray | np.generic) else None
