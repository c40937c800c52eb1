"""The graph of forward and backward pass together; all that is private in torch is imported here."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping
from typing import Any

import torch

from partitioner.integrations.torch.graphs.operations import in_place_argument
from partitioner.integrations.torch.installed import check_version

OPERATOR = "operator"  # the field of a node's custom data that names the exported operation


def joint_graph(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the graph of forward and backward pass of an exported program.

    The field ``"custom"`` of every node's data names the exported operation that it belongs to; autograd's
    additions of gradients have none. Where no operation writes into a tensor, torch need not look for such
    writes while it traces, which takes a sixth of the time.
    """
    check_version(torch.__version__)
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
    from torch.fx.traceback import preserve_node_meta

    module = exported.module()
    _constants_as_buffers(module, exported.constants)
    for node in module.graph.nodes:
        node.meta["custom"] = {OPERATOR: node.name}
    pure = not writes(exported.graph)
    with contextlib.ExitStack() as stack, preserve_node_meta():
        joint = aot_export_joint_with_descriptors(stack, module, args, kwargs, disable_functionalization=pure)
        return joint.graph_module.graph


def _constants_as_buffers(module: Any, constants: Mapping[str, Any]) -> None:
    """Register the tensors that a module holds as plain attributes, which torch would not trace."""
    for path, tensor in constants.items():
        owner, _, name = path.rpartition(".")
        inner = module.get_submodule(owner)
        if isinstance(tensor, torch.Tensor) and name in vars(inner):
            delattr(inner, name)
            inner.register_buffer(name, tensor, persistent=False)


def writes(graph: Any) -> bool:
    """Whether an operation of an exported program writes into a tensor, or is a call of a graph."""
    return any(
        in_place_argument(node) is not None or not hasattr(node.target, "_schema")
        for node in graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    )


def operator_of(node: Any) -> str | None:
    """Return the exported operation that a node of the joint graph belongs to, None if unknown."""
    if node.meta.get("is_gradient_acc", False):
        return None
    name = node.meta.get("custom", {}).get(OPERATOR)
    return None if name is None else str(name)


def is_backward(node: Any) -> bool:
    """Whether a node of the joint graph belongs to the backward pass."""
    return bool(node.meta.get("partitioner_tag") == "is_backward")


def described(node: Any) -> tuple[str, str]:
    """Return the kind and the path of what a placeholder of the joint graph stands for."""
    from torch._functorch._aot_autograd.descriptors import BufferAOTInput, ParamAOTInput, TangentAOTInput

    what = node.meta["desc"]
    if isinstance(what, ParamAOTInput):
        return "parameter", what.target
    if isinstance(what, BufferAOTInput):
        return "buffer", what.target
    return "gradient" if isinstance(what, TangentAOTInput) else "input", node.name


def outputs_of(graph: Any) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return the nodes that are gradients, those that are new values of buffers, and the model's outputs."""
    from torch._functorch._aot_autograd.descriptors import (
        BufferAOTInput,
        GradAOTOutput,
        InputMutationAOTOutput,
        ParamAOTInput,
        PlainAOTOutput,
    )

    node = graph.output_node()
    pairs = [
        (value, what)
        for value, what in zip(node.args[0], node.meta["desc"], strict=True)
        if isinstance(value, torch.fx.Node)  # neither None nor a constant
    ]
    gradients = {
        value.name: what.grad_of.target
        for value, what in pairs
        if isinstance(what, GradAOTOutput) and isinstance(what.grad_of, ParamAOTInput)
    }
    updates = {
        value.name: what.mutated_input.target
        for value, what in pairs
        if isinstance(what, InputMutationAOTOutput) and isinstance(what.mutated_input, BufferAOTInput)
    }
    return gradients, updates, tuple(value.name for value, what in pairs if isinstance(what, PlainAOTOutput))
