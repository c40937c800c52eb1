"""The operation of the exported program that each node of torch's graphs belongs to."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import pairwise
from typing import Any

from partitioner.integrations.torch.graphs.joint import operator_of
from partitioner.integrations.torch.graphs.operations import in_place_argument, module_of
from partitioner.integrations.torch.graphs.values import storage_of, tensors_of

GETITEM = "<built-in function getitem>"
NORMALISATIONS = (
    "batch_norm",
    "instance_norm",
)  # they write running statistics, which their schemas do not say
RUNNING, TRAINING = slice(3, 5), 5  # their arguments: mean and variance, and whether these are updated


def exported_owners(graph: Any) -> dict[str, str]:
    """Return the operation that each node of an exported program belongs to.

    An item of a tuple belongs to the operation that returns the tuple. An operation that only counts in a
    buffer, as batch normalisation does, belongs to the next one of its module.
    """
    owner: dict[str, str] = {}
    counting: list[Any] = []
    for node in _calls(graph):
        made = str(node.target) == GETITEM
        owner[node.name] = owner.get(node.args[0].name, node.name) if made else node.name
        target = in_place_argument(node)
        if target is not None and target.op == "placeholder" and len(node.all_input_nodes) == 1:
            counting.append(node)
            continue
        owner |= {one.name: node.name for one in counting if module_of(one) == module_of(node)}
        counting = []
    return owner


def joined(graph: Any) -> list[tuple[str, str]]:
    """Return pairs of nodes that return or write the same memory, if some node writes into it."""
    calls = _calls(graph)
    written = {key for node in calls for key in storages_written(node)}
    before: dict[int, str] = {}
    pairs = []
    for node in calls:
        for key in written & {*storage_keys(node), *storages_written(node)}:
            pairs += [(node.name, before[key])] if key in before else []
            before[key] = node.name
    return pairs


def changed_sources(graph: Any, held: Container[str]) -> list[Any]:
    """Return the placeholders that a call writes into, of those whose names are `held`."""
    written = {key for node in _calls(graph) for key in storages_written(node)}
    sources = [node for node in graph.find_nodes(op="placeholder") if node.name in held]
    return [node for node in sources if written & {*storage_keys(node)}]


def readers_joined(sources: Iterable[Any]) -> list[tuple[str, str]]:
    """Return pairs of the nodes that read each source, which must see what the others write into it."""
    return [pair for node in sources for pair in pairwise(one.name for one in node.users if tensors_of(one))]


def backward_alone(graph: Any, owner: Mapping[str, str], forward: Container[str]) -> list[tuple[str, str]]:
    """Return pairs of an operator that a joint graph has no forward operation of, and one that it reads.

    Views of what an operator writes into are such: a joint graph writes into nothing.
    """
    return [
        (owner[node.name], owner[read.name])
        for node in _calls(graph)
        if owner[node.name] not in forward
        for read in node.all_input_nodes
        if read.name in owner
    ]


def storages_written(node: Any) -> list[int]:
    """Return what tells the pieces of memory that a node writes into from others."""
    targets = [in_place_argument(node), *_written_inside(node)]
    if getattr(node.target, "_opname", "") in NORMALISATIONS and node.args[TRAINING]:
        targets += node.args[RUNNING]
    return [key for one in targets if one is not None for key in storage_keys(one)]


def storage_keys(node: Any) -> list[int]:
    """Return what tells the pieces of memory that a node returns from others."""
    return [storage_of(tensor, node.name).key for tensor in tensors_of(node)]


def _written_inside(node: Any) -> list[Any]:
    """Return the arguments that a graph which a node calls, as that of ``torch.no_grad``, writes into."""
    names = [str(read.target) for read in node.all_input_nodes if read.op == "get_attr"]
    called: list[Any] = [getattr(node.graph.owning_module, name, None) for name in names]
    found: list[Any] = []
    for graph in (one.graph for one in called if hasattr(one, "graph")):
        written = {key for one in graph.nodes for key in storages_written(one)}
        inputs = graph.find_nodes(op="placeholder")
        given = node.args[len(node.args) - len(inputs) :]
        found += [one for one, own in zip(given, inputs, strict=True) if written & {*storage_keys(own)}]
    return found


def joint_owners(graph: Any, exported: Mapping[str, str]) -> dict[str, str]:
    """Return the exported operation that each node of a joint graph belongs to.

    A sum of gradients belongs to the operation whose gradient is added last; so the gradient of a shared
    parameter is where the model reads the parameter first. What reads nothing belongs to the operation before
    it, and at the very beginning to the first one.
    """
    owner: dict[str, str] = {}
    nodes = _calls(graph)
    position = {node: i for i, node in enumerate(nodes)}
    first = next((name for name in map(operator_of, nodes) if name is not None), None)
    for node in nodes:
        name = operator_of(node)
        read = [position[one] for one in node.all_input_nodes if one in position]
        if name is None and not (read or position[node]):
            name = first
        if name is None:
            owner[node.name] = owner[nodes[max(read, default=position[node] - 1)].name]
        else:
            owner[node.name] = exported.get(name, name)
    return owner


def _calls(graph: Any) -> list[Any]:
    return [node for node in graph.nodes if node.op == "call_function" and tensors_of(node)]
