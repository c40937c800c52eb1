"""Sizes for the dynamic dimensions of a model's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, nearest, shown


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
