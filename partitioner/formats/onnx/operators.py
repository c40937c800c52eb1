"""The nodes of an ONNX model with all that their costs follow from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, nearest, shown
from partitioner.formats.onnx.model_file import has_body, onnx_module, without_weights
from partitioner.formats.onnx.module_paths import path_of
from partitioner.formats.onnx.shapes import with_shapes
from partitioner.formats.onnx.tensors import OnnxTensor, sized, tensor_of

OWN_DOMAINS = ("", "ai.onnx")
RULE = "has no shape that onnx can infer; set it in the model's value_info"


@dataclass(frozen=True, eq=False)
class OnnxOperator:
    """A node that runs for every sample: its tensors by name ("" for one left out), and its module."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    path: str | None


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """The operators of a model, its tensors, and the weights that each constant tensor is made of.

    Parameters
    ----------
    operators
        In topological order. Nodes of constants alone, such as a transposed weight, run once and are left
        out.
    tensors
        The shape and type of each tensor.
    constants
        The initializers (and outputs of Constant nodes) that a constant tensor is computed from, by name.
    initializers
        The names of the initializers.
    """

    operators: tuple[OnnxOperator, ...]
    tensors: Mapping[str, OnnxTensor]
    constants: Mapping[str, frozenset[str]]
    initializers: frozenset[str]


def node_titles(graph: Any) -> list[str]:
    """Return a title for each node: its name, or operator and position as ONNX Runtime counts them."""
    position, titles = 0, []
    for node in graph.node:
        titles.append(node.name or f"{node.op_type}_{position}")
        position += node.op_type != "Constant"
    return titles


def constant_tensors(graph: Any) -> dict[str, frozenset[str]]:
    """Return the tensors that no input changes, with the initializers and Constant nodes they come from."""
    found = {each.name: frozenset((each.name,)) for each in graph.initializer}
    for node in graph.node:
        read = [name for name in node.input if name]
        if node.op_type.startswith("Random") or has_body(node) or not all(name in found for name in read):
            continue
        roots = frozenset().union(*(found[name] for name in read)) or frozenset(node.output)
        found |= dict.fromkeys(node.output, roots)
    return found


def read_operators(
    model: Any, source: str, dims: Mapping[str, int] | None = None, dtype: str | None = None
) -> OnnxGraph:
    """Return the operators of a model with inferred shapes; floating-point tensors are taken as `dtype`.

    Raises
    ------
    WorkloadError
        Naming each dimension without a size, and each tensor without a shape.
    OptionError
        If `dims` names a dimension that the model does not have.
    """
    initializers = frozenset(each.name for each in model.graph.initializer)
    bare = without_weights(model, source)
    bind_dimensions(bare.graph, dims, set(initializers), source)
    onnx = onnx_module()
    graph, tensors = bare.graph, _tensors(with_shapes(bare, source), dtype)
    weights = onnx.GraphProto(node=graph.node, initializer=graph.initializer)
    weights.initializer.extend(onnx.TensorProto(name=name) for name in initializers)
    constants = constant_tensors(weights)
    operators, flaws = [], []
    for title, node in zip(node_titles(graph), graph.node, strict=True):
        if all(name in constants for name in node.output):
            continue
        operators.append(_operator(title, node))
        unknown = (name for name in (*node.input, *node.output) if name and name not in tensors)
        flaws += [Flaw(f"node {shown(title)}", f"tensor {name}", "", RULE) for name in unknown]
    if not operators:
        flaws.append(Flaw("file", "graph", "", "must have a node that reads an input"))
    if flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    return OnnxGraph(tuple(operators), tensors, constants, initializers)


def _tensors(graph: Any, dtype: str | None) -> dict[str, OnnxTensor]:
    """Return the tensors of which shape and type are known, by name."""
    kinds = {number: name for name, number in onnx_module().TensorProto.DataType.items()}
    shapes = {
        each.name: (each.type.tensor_type.elem_type, sized(each))
        for each in (*graph.input, *graph.value_info, *graph.output)
    }
    shapes |= {each.name: (each.data_type, tuple(each.dims)) for each in graph.initializer}
    found = {
        name: tensor_of(kinds.get(kind, ""), shape, dtype)
        for name, (kind, shape) in shapes.items()
        if shape is not None
    }
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _operator(title: str, node: Any) -> OnnxOperator:
    get = onnx_module("onnx.helper").get_attribute_value
    return OnnxOperator(
        title,
        node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}.{node.op_type}",
        tuple(node.input),
        tuple(node.output),
        {attribute.name: get(attribute) for attribute in node.attribute},
        path_of(node),
    )


# Sizes for the dynamic dimensions of a model's inputs.


def bind_dimensions(graph: Any, dims: Mapping[str, int] | None, fixed: set[str], source: str) -> None:
    """Set the dynamic dimensions of a graph in place; all other unknown sizes are left to shape inference.

    A dimension without a name is called as its input and its position, ``"x.0"``.

    Parameters
    ----------
    graph
        The graph of the model.
    dims
        The size of each dimension by name.
    fixed
        The inputs that are weights.
    source
        The file's name for messages.

    Raises
    ------
    OptionError
        If a size is not an integer of at least 1, or the model has no dimension of a name.
    WorkloadError
        Naming each dimension that has no size.
    """
    sizes = _checked(dims)
    found: set[str] = set()
    flaws = []
    for each in graph.input:
        for name, dimension in _open(each):
            found.add(name)
            if name in sizes:
                dimension.dim_value = sizes[name]
            elif each.name not in fixed:
                rule = f"has no size; give one as dims={{{name!r}: ...}} (--dims {name}=N)"
                flaws.append(Flaw(f"input {each.name}", f"dimension {name}", "", rule))
    for name in sizes:
        if name not in found:
            words = f"its dynamic dimensions are {', '.join(sorted(found)) or 'none'}"
            raise OptionError(f"dims: {shown(name)}: is not in {source}; {words}{nearest(name, list(found))}")
    if flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    for each in (*graph.output, *graph.value_info):
        for name, dimension in _open(each):
            if name in sizes:
                dimension.dim_value = sizes[name]
            else:
                dimension.Clear()


def _checked(dims: Mapping[str, int] | None) -> Mapping[str, int]:
    if dims is None:
        return {}
    if not isinstance(dims, Mapping):
        raise OptionError(f"dims = {shown(dims)}: must be a mapping from names of dimensions to sizes")
    for name, size in dims.items():
        if not is_count(size, 1, 2**31):
            raise OptionError(f"dims[{name!r}] = {shown(size)}: must be an integer of at least 1")
    return dims


def _open(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the dimensions of a tensor that have no size, by name."""
    for i, dimension in enumerate(value.type.tensor_type.shape.dim):
        if dimension.WhichOneof("value") != "dim_value":
            yield dimension.dim_param or f"{value.name}.{i}", dimension
