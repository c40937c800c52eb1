"""The tensors that nodes of torch's graphs return: their memory and their bytes."""

from __future__ import annotations

from typing import Any

import torch

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.integrations.torch.graphs.operation import Source, Storage


def tensors_of(node: Any) -> list[Any]:
    """Return the tensors without data that a node returns."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return [value]
    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def require_shapes(graph: Any) -> None:
    """Raise if the shape of a tensor in a graph depends on values.

    Raises
    ------
    WorkloadError
        Naming the operation.
    """
    for node in graph.nodes:
        for tensor in tensors_of(node):
            nbytes_of(tensor, node.name)


def arguments_of(node: Any) -> tuple[Any, Any]:
    """Return the arguments of a node's call, with tensors without data in place of nodes."""

    def value(read: Any) -> Any:
        if "val" in read.meta:
            return read.meta["val"]
        return getattr(read.graph.owning_module, str(read.target), None)  # a graph that the node calls

    found: tuple[Any, Any] = torch.fx.node.map_arg((node.args, node.kwargs), value)
    return found


def storage_of(tensor: Any, where: str) -> Storage:
    """Return the memory that a tensor or the tensor that it is a view of takes."""
    if tensor.layout is not torch.strided:
        return Storage(id(tensor), nbytes_of(tensor, where))
    memory = tensor.untyped_storage()
    return Storage(int(memory._cdata), _integer(memory.nbytes(), where))


def nbytes_of(tensor: Any, where: str) -> int:
    """Return the bytes of a tensor's numbers."""
    return _integer(tensor.numel(), where) * int(tensor.element_size())


def as_captured(node: Any, value: Any) -> Any:
    """Return what a call made, its tensors in the layout that later calls were captured for."""
    known = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return in_layout(value, known)
    if isinstance(value, tuple | list) and isinstance(known, tuple | list) and len(value) == len(known):
        return type(value)(in_layout(one, form) for one, form in zip(value, known, strict=True))
    return value


def in_layout(value: Any, form: Any) -> Any:
    """Return a tensor with the strides of another one of its shape, which has no data."""
    if not (isinstance(value, torch.Tensor) and isinstance(form, torch.Tensor)):
        return value
    if value.layout is not torch.strided or value.stride() == form.stride() or value.shape != form.shape:
        return value
    repeated = [stride == 0 for stride in form.stride()]
    shape = [1 if again else size for size, again in zip(value.shape, repeated, strict=True)]
    first = tuple(slice(0, 1) if again else slice(None) for again in repeated)
    made = torch.empty_strided(shape, form.stride(), dtype=value.dtype, device=value.device)
    return made.copy_(value[first]).expand(value.shape)


def source_of(node: Any, kind: str, path: str) -> Source:
    """Return what a placeholder stands for."""
    (tensor,) = tensors_of(node)
    nbytes = nbytes_of(tensor, node.name)
    return Source(kind, path, storage_of(tensor, node.name), nbytes, nbytes // int(tensor.element_size()))


def dtype_of(tensor: Any) -> str:
    """Return the type of a tensor's numbers, such as ``"bfloat16"``.

    Examples
    --------
    >>> dtype_of(torch.zeros(1))
    'float32'
    """
    return str(tensor.dtype).removeprefix("torch.")


def _integer(number: Any, where: str) -> int:
    try:
        return int(number)
    except Exception:  # a symbol whose value depends on data raises an error of torch's own
        rule = "depends on the values of tensors; only shapes that are known beforehand can be planned"
        raise WorkloadError([Flaw(f"operation {where}", "shape", "", rule)]) from None
