"""Shapes of all tensors of an ONNX model, also where shapes are computed by nodes from other shapes.

``python -m partitioner.formats.onnx.shapes MEMORY`` reads a model from standard input and writes its graph
with shapes to standard output: onnx's native code may take any memory, or end its process, on a model that is
made to do so.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.formats.onnx.model_file import has_body, onnx_module, refuse
from partitioner.formats.onnx.tensors import sized

MOST_NUMBERS = 256  # of a tensor whose value is followed; those of shapes are small
LEAST_MEMORY, TIMES_MODEL = 2 << 30, 30  # bytes that onnx may take: at least, and per byte of the model
LONGEST = 600.0  # seconds
Values = dict[str, NDArray[Any]]


def with_shapes(model: Any, source: str) -> Any:
    """Return what :func:`inferred` does, which runs in a process of its own.

    Raises
    ------
    WorkloadError
        If the model is not sound, its shapes contradict each other, or onnx fails on it.
    """
    _refuse_negative(model.graph, source)
    content = model.SerializeToString()
    memory = LEAST_MEMORY + TIMES_MODEL * len(content)
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
    try:
        done = subprocess.run(
            [sys.executable, "-m", "partitioner.formats.onnx.shapes", str(memory)],
            input=content,
            capture_output=True,
            timeout=LONGEST,
            env={**os.environ, "PYTHONPATH": paths},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _failed(f"in {LONGEST:g} seconds", source) from None
    if done.returncode != 0:
        raise _failed(f"within {memory / 2**30:.3g} GiB of memory", source)
    if done.stderr:
        refuse(done.stderr.decode(errors="replace"), source)
    return onnx_module().GraphProto.FromString(done.stdout)


def _failed(limit: str, source: str) -> WorkloadError:
    words = f"cannot be read as an ONNX model: onnx does not find the shapes of its tensors {limit}"
    return WorkloadError([Flaw("file", "", "", words)], source)


def _refuse_negative(graph: Any, source: str) -> None:
    """Raise if a size of a tensor is negative, at which onnx may end the process."""
    values = (*graph.input, *graph.output, *graph.value_info)
    sizes = [(each.name, [d.dim_value for d in each.type.tensor_type.shape.dim]) for each in values]
    sizes += [(each.name, list(each.dims)) for each in graph.initializer]
    sizes += [
        (node.output[0] if node.output else node.name, list(attribute.t.dims))
        for node in graph.node
        for attribute in node.attribute
    ]
    flaws = [
        Flaw(f"tensor {shown(name)}", "dims", shown(dims), "no size must be negative")
        for name, dims in sizes
        if min(dims, default=0) < 0
    ]
    if flaws:
        raise WorkloadError(flaws, source)


def inferred(model: Any) -> Any:
    """Return the graph of a model with the types of its tensors.

    Where onnx alone does not find a shape, nodes that compute with known shapes are replaced by what they
    compute, until this helps no more; so nodes of the result are not those of the model.

    Raises
    ------
    Exception
        Any of onnx's own: if the model is not sound, or its shapes contradict each other.
    """
    onnx = onnx_module()
    infer_shapes = onnx_module("onnx.shape_inference").infer_shapes
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


def main() -> None:
    """Infer the shapes of the model on standard input, and write them or the error."""
    with suppress(ImportError, ValueError, OSError):  # no POSIX system, or a stricter limit of its own
        import resource

        memory = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        found = inferred(onnx_module().ModelProto.FromString(sys.stdin.buffer.read())).SerializeToString()
    except Exception as error:  # onnx raises errors of protobuf and of its own
        sys.stderr.write(f"{type(error).__name__}: {error}")
        return
    sys.stdout.buffer.write(found)


if __name__ == "__main__":
    main()
