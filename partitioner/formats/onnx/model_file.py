"""Loading of ONNX models without their weights; the package onnx is imported when one is loaded."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, Flaw, WorkloadError, shown

LARGEST_CONSTANT = 1024  # bytes of data that shape inference is given; the data of larger tensors is dropped
EXTERNAL = 1  # TensorProto.EXTERNAL: the data of the tensor is in a file of its own
BODIES = (5, 10)  # AttributeProto.GRAPH, GRAPHS


def onnx_module(name: str = "onnx") -> Any:
    """Return a module of the package onnx.

    Raises
    ------
    BackendUnavailable
        If the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise BackendUnavailable(f"ONNX models need onnx: {remedy('onnx')}") from error


def load_proto(source: str) -> Any:
    """Return the model in a file; data in files of its own is not read.

    Raises
    ------
    WorkloadError
        If the file cannot be read or is not an ONNX model.
    """
    onnx = onnx_module()
    try:
        return onnx.load(source, load_external_data=False)
    except Exception as error:  # onnx raises errors of protobuf, of the system and of its own
        refuse(error, source)


def without_weights(model: Any, source: str) -> Any:
    """Return a copy of a model of calls alone, in which large initializers are inputs without data.

    Calls of the model's own functions are replaced by the bodies of these.

    Raises
    ------
    WorkloadError
        If the model has no nodes, or one of them has a body of its own, as loops have.
    """
    onnx, graph = onnx_module(), model.graph
    _check_texts(graph, source)
    copy = onnx.ModelProto(
        ir_version=model.ir_version,
        opset_import=model.opset_import,
        functions=model.functions,
        graph=onnx.GraphProto(
            name="model", node=graph.node, input=graph.input, output=graph.output, value_info=graph.value_info
        ),
    )
    given = {each.name for each in graph.input}
    for tensor in graph.initializer:
        if tensor.data_location != EXTERNAL and tensor.ByteSize() <= LARGEST_CONSTANT:
            copy.graph.initializer.append(tensor)
        elif tensor.name not in given:
            shape = list(tensor.dims)
            copy.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, shape))
    if copy.functions:
        try:
            copy = onnx_module("onnx.inliner").inline_local_functions(copy)
        except Exception as error:  # onnx raises errors of its own
            refuse(error, source)
        _check_texts(copy.graph, source)
    _check_nodes(copy.graph, source)
    return copy


def has_body(node: Any) -> bool:
    """Whether a node contains graphs, as loops and branches do."""
    return any(attribute.type in BODIES for attribute in node.attribute)


def refuse(error: Exception | str, source: str) -> NoReturn:
    """Raise an error of the package onnx, or its words, as one about the file.

    Raises
    ------
    WorkloadError
        Always.
    """
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    flaw = Flaw("file", "", "", f"cannot be read as an ONNX model: {' '.join(words.split())}")
    raise WorkloadError([flaw], source) from (None if isinstance(error, str) else error)


def _check_texts(graph: Any, source: str) -> None:
    """Raise if a name is not a text: protobuf returns bytes that are not UTF-8 as they are."""
    values = (*graph.input, *graph.output, *graph.value_info)
    found = [each.name for each in (*graph.node, *graph.initializer, *values)]
    found += [name for node in graph.node for name in (node.op_type, node.domain, *node.input, *node.output)]
    found += [
        text for node in graph.node for entry in node.metadata_props for text in (entry.key, entry.value)
    ]
    found += [attribute.name for node in graph.node for attribute in node.attribute]
    found += [size.dim_param for each in values for size in each.type.tensor_type.shape.dim]
    wrong = [Flaw("file", "graph", shown(name), "must be UTF-8") for name in found if isinstance(name, bytes)]
    if wrong:
        raise WorkloadError(wrong, source)


def _check_nodes(graph: Any, source: str) -> None:
    rule = "has a body of its own; control flow cannot be planned"
    flaws = [
        Flaw(f"node {node.name or '?'}", "", node.op_type, rule) for node in graph.node if has_body(node)
    ]
    if not graph.node:
        flaws.append(Flaw("file", "graph", "", "must have nodes"))
    if flaws:
        raise WorkloadError(flaws, source)
