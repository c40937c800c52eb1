"""Operations of torch's graphs as plain data, with the bytes that each moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from partitioner.integrations.torch.graphs.flops import NOTHING, Counted, FlopCounts
from partitioner.integrations.torch.graphs.operation import AtenOperation, Storage
from partitioner.integrations.torch.graphs.values import (
    arguments_of,
    dtype_of,
    nbytes_of,
    storage_of,
    tensors_of,
)

LOOKUPS = ("embedding", "index_select", "gather", "index")  # read as much of their first input as they return


def operation_of(node: Any, operator: str, backward: bool, counts: FlopCounts) -> AtenOperation:
    """Return the operation of a node that calls a function."""
    read, made = node.all_input_nodes, tensors_of(node)
    outputs = tuple(storage_of(tensor, node.name) for tensor in made)
    moved = _moved(node, outputs)
    counted = _counted(node, made, counts) if any(moved) else NOTHING
    return AtenOperation(
        name=node.name,
        operator=operator,
        target=str(node.target),
        module=module_of(node),
        backward=backward,
        reads=tuple(one.name for one in read),
        outputs=outputs,
        sent=sum(nbytes_of(tensor, node.name) for tensor in made),
        flops=counted.flops,
        bytes_in=moved[0],
        bytes_out=moved[1],
        dtype=_computed_in(made),
        strided=any(not tensor.is_contiguous() for tensor in made if tensor.layout is torch.strided),
        parts=counted.parts,
        random=torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()),
    )


def uncounted(node: Any, operation: AtenOperation) -> bool:
    """Whether a forward operation reads a matrix and makes something new, but counts as no arithmetic."""
    read = [tensor for one in node.all_input_nodes if one.op == "placeholder" for tensor in tensors_of(one)]
    matrix = any(tensor.ndim > 1 and tensor.requires_grad for tensor in read)
    return (
        matrix
        and not (operation.backward or operation.flops)
        and _name(node) not in LOOKUPS
        and operation.bytes_out > 0
    )


def module_of(node: Any) -> str:
    """Return the path of the innermost module that calls a node, of its forward node for a backward node."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    paths = [str(path) for path, _ in stack.values()]
    return paths[-1] if paths else ""


def in_place_argument(node: Any) -> Any | None:
    """Return the node whose tensor a call writes into, None if it writes into none."""
    schema = getattr(node.target, "_schema", None)
    for argument, value in zip(schema.arguments if schema else (), node.args, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            return value
    return None


def _moved(node: Any, outputs: Iterable[Storage]) -> tuple[int, int]:
    """Return the bytes that a call reads from memory and writes to it; none if it only returns views."""
    read = [(one, tensor) for one in node.all_input_nodes for tensor in tensors_of(one)]
    known = {storage_of(tensor, node.name).key for _, tensor in read}
    new = [tensor for tensor in tensors_of(node) if storage_of(tensor, node.name).key not in known]
    written = sum(nbytes_of(tensor, node.name) for tensor in new)
    target = in_place_argument(node)
    if target is not None:
        written += sum(nbytes_of(tensor, node.name) for tensor in tensors_of(target))
    elif not new:
        return 0, 0
    whole = {one.name: _bytes(one, tensor) for one, tensor in read}
    if _name(node) in LOOKUPS and read:
        first = read[0][0].name
        whole[first] = min(whole[first], written)
    return sum(whole.values()), written


def _bytes(node: Any, tensor: Any) -> int:
    """Return the bytes of a tensor, of an expanded one those that lie in memory."""
    return min(nbytes_of(tensor, node.name), storage_of(tensor, node.name).nbytes)


def _name(node: Any) -> str:
    return str(getattr(node.target, "_opname", node.target))


def _counted(node: Any, made: list[Any], counts: FlopCounts) -> Counted:
    args, kwargs = arguments_of(node)
    return counts.of(node.target, args, kwargs, made[0].fake_mode)


def _computed_in(made: list[Any]) -> str:
    floating: Callable[[Any], bool] = lambda tensor: tensor.is_floating_point()  # noqa: E731
    return next((dtype_of(tensor) for tensor in made if floating(tensor)), "float32")
