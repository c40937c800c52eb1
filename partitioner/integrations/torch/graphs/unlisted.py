"""Operators of an exported program that no node of a graph has: joint graphs lack some."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, TypeVar

import torch

from partitioner.integrations.torch.graphs.owners import storage_keys, storages_written
from partitioner.integrations.torch.graphs.values import tensors_of

Value = TypeVar("Value")


def without_dead(graph: Any, owner: Mapping[str, str], listed: Container[str]) -> None:
    """Erase the calls whose results nothing reads, of operators that no node has; also mere checks.

    Parameters
    ----------
    graph
        The graph of an exported program, which is changed.
    owner
        The operator of each call that makes a tensor.
    listed
        The operators that the nodes of the model's graph have.
    """
    for node in reversed([node for node in graph.nodes if node.op == "call_function"]):
        check = not tensors_of(node)  # of a tensor's device and type
        dead = owner.get(node.name) not in listed and not storages_written(node)
        if not node.users and (check or dead):
            graph.erase_node(node)


def foreign_operators(
    operator: Mapping[Any, str], listed: Container[str], *, results: bool = False
) -> list[str]:
    """Return the operators that no node has although a graph of the same model, for training, had them.

    A joint graph lacks what only returns views, and what reads no parameter and no buffer.

    Parameters
    ----------
    operator
        The operator of each call, in the order of the program.
    listed
        The operators that the nodes of the graph have.
    results
        Whether the program may return what the loss does not read, which a joint graph lacks, too.
    """
    needed: set[Any] = set()  # calls on which a listed operator depends
    for node, name in reversed(list(operator.items())):
        if name in listed or node in needed:
            needed.update(node.all_input_nodes)
    return [
        name
        for node, name in operator.items()
        if name not in listed
        and any(one.op == "get_attr" for one in node.all_input_nodes)
        and _makes_memory(node)
        and (node in needed or not results)
    ]


def alike_anywhere(module: Any, calls: Iterable[Any]) -> set[Any]:
    """Return the calls that make the same of the same tensors wherever and whenever they run.

    They draw no random numbers, write nothing, and read no parameter and no buffer that a call writes into.

    Parameters
    ----------
    module
        The module of an exported program.
    calls
        Its calls.
    """
    calls = list(calls)
    changed = {one.target for node in calls if storages_written(node) for one in node.all_input_nodes}
    changed |= {name for name, _ in module.named_parameters()}
    seeded = torch.Tag.nondeterministic_seeded
    return {
        node
        for node in calls
        if seeded not in getattr(node.target, "tags", ())
        and not storages_written(node)
        and changed.isdisjoint(one.target for one in node.all_input_nodes if one.op == "get_attr")
    }


def _makes_memory(node: Any) -> bool:
    read = {key for one in node.all_input_nodes for key in storage_keys(one)}
    return not read.issuperset(storage_keys(node))


def of_calls(operator: Mapping[Any, str], given: Mapping[str, Value]) -> dict[Any, Value]:
    """Return the value of each call's operator.

    A call whose operator has none has that of what it reads, else that of what reads it, else the first one.

    Parameters
    ----------
    operator
        The operator of each call, in the order of the program.
    given
        The values of operators.
    """
    found = {node: given[name] for node, name in operator.items() if name in given}
    for node in operator:
        read = [found[one] for one in node.all_input_nodes if one in found]
        if read:
            found.setdefault(node, read[0])
    for node in reversed(list(operator)):
        readers = [found[one] for one in node.users if one in found]
        found.setdefault(node, next(iter((*readers, *given.values()))))
    return {node: found[node] for node in operator}
