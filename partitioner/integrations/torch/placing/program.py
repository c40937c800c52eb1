"""The program of a model that is to be placed: its calls, without what holds for one device only."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import torch

from partitioner.integrations.torch.graphs.exported import exported_program
from partitioner.integrations.torch.graphs.owners import exported_owners
from partitioner.integrations.torch.graphs.scored import Scored, path_in_model
from partitioner.integrations.torch.graphs.unlisted import without_dead


def program_of(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    loss: Callable[..., Any] | None,
    targets: tuple[Any, ...],
    listed: Container[str],
) -> tuple[Any, dict[Any, str]]:
    """Return a module that calls a model's operators, and the operator that each call belongs to.

    Calls of operators that are not listed and whose results nothing reads are left out.
    """
    whole = model if loss is None else Scored(model, loss, len(args))
    trained = any(one.requires_grad for one in model.parameters())
    exported = exported_program(whole, (*args, *targets), kwargs, trained)
    owner = exported_owners(exported.graph)
    module = exported.module()
    without_dead(module.graph, owner, listed)
    if loss is not None:
        _without_prefix(module)
    return module, {node: owner[node.name] for node in calls_of(module.graph) if node.name in owner}


def calls_of(graph: Any) -> list[Any]:
    """Return the nodes of a graph that call a function."""
    return [node for node in graph.nodes if node.op == "call_function"]


def put_on(nodes: Mapping[Any, Any], module: Any) -> None:
    """Replace the devices that calls name by those where they run, also in the graphs that they call."""
    for node, device in nodes.items():
        change = lambda value, device=device: device if isinstance(value, torch.device) else value  # noqa: E731
        node.args = torch.fx.node.map_aggregate(node.args, change)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, change)
        for read in node.all_input_nodes:
            inner: Any = getattr(module, str(read.target), None) if read.op == "get_attr" else None
            if hasattr(inner, "graph"):
                put_on(dict.fromkeys(calls_of(inner.graph), device), inner)
                inner.recompile()


def _without_prefix(module: Any) -> None:
    """Give the model's tensors the names that they have without the loss."""
    inner = module.model
    del module.model  # before: the model may have a child of this name
    for table in ("_modules", "_parameters", "_buffers"):
        getattr(module, table).update(getattr(inner, table))
    for node in module.graph.find_nodes(op="get_attr"):
        node.target = path_in_model(node.target)
