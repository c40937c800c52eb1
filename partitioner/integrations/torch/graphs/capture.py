"""Capture of a model by torch.export, without running it: its operations as plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.integrations.torch.graphs.export_errors import autocast_notes, in_our_words
from partitioner.integrations.torch.graphs.exported import exported_program
from partitioner.integrations.torch.graphs.flops import FlopCounts
from partitioner.integrations.torch.graphs.joint import described, is_backward, joint_graph, outputs_of
from partitioner.integrations.torch.graphs.operation import AtenOperation, Capture, Rows, Source
from partitioner.integrations.torch.graphs.operations import module_of, operation_of, uncounted
from partitioner.integrations.torch.graphs.owners import (
    backward_alone,
    changed_sources,
    exported_owners,
    joined,
    joint_owners,
    readers_joined,
)
from partitioner.integrations.torch.graphs.scored import Scored, in_model, path_in_model
from partitioner.integrations.torch.graphs.values import source_of, tensors_of

INPUTS = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "buffer"}


class Seen(NamedTuple):
    """A graph of torch, the operator of each call, the kind and path of each placeholder, its results.

    `tensors` has the parameters, buffers and constants of the model by the paths that `home` gives. Of a
    joint graph, `gradients` and `updates` have the parameters and buffers whose gradients and new values
    nodes are.
    """

    graph: Any
    tensors: Mapping[str, Any]
    owner: Mapping[str, str]
    home: Mapping[str, tuple[str, str]]
    gradients: Mapping[str, str]
    updates: Mapping[str, str]
    outputs: tuple[str, ...]


def seen_and_captured(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    training: bool,
    loss: Callable[..., Any] | None,
    targets: tuple[Any, ...],
) -> tuple[Seen, Capture]:
    """Return the graph of torch that was captured, which can be run, and what it does as plain data."""
    if loss is None:
        return _captured(model, args, kwargs, training)
    seen, capture = _captured(Scored(model, loss, len(args)), (*args, *targets), kwargs, training)
    return seen, _without_prefix(capture)


def _captured(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], training: bool
) -> tuple[Seen, Capture]:
    exported = exported_program(model, args, kwargs, training)
    owner = exported_owners(exported.graph)
    tensors = {**exported.constants, **dict(_named(model))}
    home = _inputs(exported)
    changed = changed_sources(exported.graph, {name for name, (kind, _) in home.items() if kind != "input"})
    seen = Seen(exported.graph, tensors, owner, home, {}, {}, ())
    if training:
        with in_our_words(model):
            graph = joint_graph(exported, args, dict(kwargs))
        described_as = {node.name: described(node) for node in graph.find_nodes(op="placeholder")}
        seen = Seen(graph, tensors, joint_owners(graph, owner), described_as, *outputs_of(graph))
        _require_gradients(model, seen)
    first = _first_names(model)
    operations, silent = _operations(seen, training)
    sources = _sources(seen, first)
    return seen, Capture(
        operations=operations,
        sources=sources,
        gradients={name: first.get(path, path) for name, path in seen.gradients.items()},
        updates=frozenset(seen.updates),
        changed=frozenset(first.get(path, path) for path in (home[node.name][1] for node in changed)),
        joined=(
            *((owner[a], owner[b]) for a, b in (*joined(exported.graph), *readers_joined(changed))),
            *_backward_alone(exported.graph, owner, operations),
        ),
        loss=_of_loss(model, exported.graph, owner),
        modules=tuple(path for path, _ in model.named_modules(remove_duplicate=False) if path),
        rows=rows_of(model),
        names=first,
        notes=(*autocast_notes(model, exported.graph), *silent, *_unread(operations, sources)),
    )


def _backward_alone(
    graph: Any, owner: Mapping[str, str], operations: Iterable[AtenOperation]
) -> list[tuple[str, str]]:
    """Return pairs of operators, the first of which has operations of the backward pass only."""
    forward, backward = (
        {op.operator for op in operations if op.backward is value} for value in (False, True)
    )
    known = [pair for pair in backward_alone(graph, owner, forward) if pair[0] in backward]
    return [pair for pair in known if pair[1] in forward | backward]


def _of_loss(model: Any, graph: Any, owner: Mapping[str, str]) -> tuple[str, ...]:
    """Return the operators of the loss, those that read only targets included."""
    if not isinstance(model, Scored):
        return ()
    called = [node for node in graph.nodes if node.name in owner and not in_model(module_of(node))]
    return tuple(dict.fromkeys(owner[node.name] for node in called))


def _require_gradients(model: Any, seen: Seen) -> None:
    """Raise `WorkloadError` if no parameter gets a gradient although some want one."""
    if seen.gradients or not any(parameter.requires_grad for parameter in model.parameters()):
        return
    rule = (
        "reaches no parameter; on the device 'meta' torch does not differentiate some functions, such as "
        "cross_entropy: write the loss with log_softmax and gather, or use another device"
    )
    raise WorkloadError([Flaw("model", "backward pass", "", rule)])


def _operations(seen: Seen, training: bool) -> tuple[tuple[AtenOperation, ...], list[str]]:
    """Return the operations, and a note on each operator whose arithmetic is not known."""
    counts = FlopCounts()
    called = [node for node in seen.graph.nodes if node.op == "call_function" and tensors_of(node)]
    found = tuple(
        operation_of(node, seen.owner[node.name], training and is_backward(node), counts) for node in called
    )
    silent = [op.target for node, op in zip(called, found, strict=True) if uncounted(node, op)]
    names = dict.fromkeys((*counts.unknown, *silent))
    return found, [f"the floating-point operations of {name} are not known and count as 0" for name in names]


def _sources(seen: Seen, first: Mapping[str, str]) -> dict[str, Source]:
    found = {}
    for node in seen.graph.find_nodes(op="placeholder"):
        kind, path = seen.home[node.name]
        if tensors_of(node):
            found[node.name] = source_of(node, kind, first.get(path, path))
    return found


def _unread(operations: Iterable[AtenOperation], sources: Mapping[str, Source]) -> list[str]:
    """Return a note on each parameter that no operation reads."""
    read = {sources[name].path for op in operations for name in op.reads if name in sources}
    paths = dict.fromkeys(source.path for source in sources.values() if source.kind == "parameter")
    return [f"parameter {path} is read by no operation and not counted" for path in paths if path not in read]


def _inputs(exported: Any) -> dict[str, tuple[str, str]]:
    """Return the kind and the path of what each placeholder of an exported program stands for."""
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs}
    kinds = {name: INPUTS.get(spec.kind.name, "input") for name, spec in specs.items()}
    return {
        name: (kind, name if kind == "input" else str(specs[name].target)) for name, kind in kinds.items()
    }


def _first_names(model: Any) -> dict[str, str]:
    """Return for every name of a parameter or buffer the first name of the same tensor.

    Tensors without data have no address, so that only their identity tells which are the same.
    """
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in _named(model)}


def _named(model: Any) -> list[tuple[str, Any]]:
    return [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]


def _without_prefix(capture: Capture) -> Capture:
    """Return what was captured of a model with its loss, with the paths that the model alone has."""
    return replace(
        capture,
        operations=tuple(replace(op, module=path_in_model(op.module)) for op in capture.operations),
        sources={
            name: replace(source, path=path_in_model(source.path)) for name, source in capture.sources.items()
        },
        gradients={name: path_in_model(path) for name, path in capture.gradients.items()},
        changed=frozenset(map(path_in_model, capture.changed)),
        modules=tuple(path for path in map(path_in_model, capture.modules) if path),
        names={path_in_model(name): path_in_model(path) for name, path in capture.names.items()},
        rows=Rows(
            frozenset(map(path_in_model, capture.rows.members)),
            frozenset(map(path_in_model, capture.rows.containers)),
        ),
    )


# The rows of modules that are alike, by their classes: the layers of a network, whatever their names.
# A row is the children of one class of a module. They are more than single operators: they have modules of
# their own, and are no containers. Below a module that is no container, their names also begin alike before a
# number. So encoder_layer_0 and encoder_layer_1 are a row, and inception3a and inception4e; ResNet's layer1
# and layer2 are containers, whose members are rows.

CONTAINERS = torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential
BEGINNING = re.compile(r"\D*")


def rows_of(model: Any) -> Rows:
    """Return the modules that stand in rows, and the containers of rows.

    Examples
    --------
    >>> layers = {name: torch.nn.TransformerEncoderLayer(4, 1) for name in ("first", "second")}
    >>> sorted(rows_of(torch.nn.ModuleDict(layers | {"head": torch.nn.Linear(4, 4)})).members)
    ['first', 'second']
    """
    members, containers = set(), set()
    for path, module in model.named_modules(remove_duplicate=False):
        families: dict[tuple[type, str], list[str]] = {}
        for name, child in module.named_children():
            if not isinstance(child, CONTAINERS) and any(True for _ in child.children()):
                family = type(child), "" if isinstance(module, CONTAINERS) else _beginning(name)
                families.setdefault(family, []).append(f"{path}.{name}" if path else name)
        found = {one for names in families.values() if len(names) > 1 for one in names}
        members |= found
        containers |= {path} if found and isinstance(module, CONTAINERS) else set()
    return Rows(frozenset(members), frozenset(containers))


def _beginning(name: str) -> str:
    """Return what a name has before its first number; all of a name without one."""
    found = BEGINNING.match(name)
    return found[0] if found else name
