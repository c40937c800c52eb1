"""The operators of an ONNX model as layers: one each, or all operators of a layer of the network together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.formats.onnx.costs import OperatorCost, parameters_of
from partitioner.formats.onnx.module_paths import layer_path
from partitioner.formats.onnx.operators import OnnxGraph
from partitioner.workload.extras import SHARED
from partitioner.workload.layer import Layer

NODES = "nodes"  # the field of a node that lists the nodes of the model which it stands for, if it is a layer


@dataclass(frozen=True, eq=False)
class OperatorGroup:
    """Operators that make one node of the graph: their positions, the node's title and its layer."""

    name: str
    label: str | None
    members: list[int]


def grouped(graph: OnnxGraph, by_layer: bool, source: str) -> list[OperatorGroup]:
    """Return each operator, or the operators of each layer, in topological order.

    Raises
    ------
    WorkloadError
        If layers read each other.
    """
    if not by_layer:
        return [OperatorGroup(each.name, each.path, [i]) for i, each in enumerate(graph.operators)]
    groups: dict[str, OperatorGroup] = {}
    for i, (each, label) in enumerate(zip(graph.operators, layer_labels(graph), strict=True)):
        groups.setdefault(label or each.name, OperatorGroup(label or each.name, label, [])).members.append(i)
    made = _makers(graph, list(groups.values()))
    reads: nx.DiGraph[str] = nx.DiGraph()
    reads.add_nodes_from(groups)
    for name, group in groups.items():
        for tensor in _read(graph, group):
            if made.get(tensor, name) != name:
                reads.add_edge(made[tensor], name)
    try:
        order = {name: i for i, name in enumerate(groups)}
        return [groups[name] for name in nx.lexicographical_topological_sort(reads, key=order.__getitem__)]
    except nx.NetworkXUnfeasible:
        cycle = ", ".join(u for u, _ in nx.find_cycle(reads))
        rule = "read each other; use granularity='operator'"
        raise WorkloadError([Flaw(f"layers {cycle}", "", "", rule)], source) from None


def layers_of(
    graph: OnnxGraph, groups: Sequence[OperatorGroup], costs: Sequence[OperatorCost], times: Sequence[float]
) -> list[Layer]:
    """Return the layer of each group; the bytes of a parameter belong to the first group that reads it."""
    made = _makers(graph, groups)
    reads = [_read(graph, group) for group in groups]
    holders: dict[str, list[str]] = {}
    for group in groups:
        for name in _parameters(graph, group):
            holders.setdefault(name, []).append(group.name)
    sent = _sent(graph, groups, made, reads)
    return [
        Layer(
            group.name,
            forward=math.fsum(times[i] for i in group.members),
            parameters=_held(graph, group, holders)[0],
            workspace=max(costs[i].activations for i in group.members),
            inputs=sent[group.name],
            more=_more(graph, group, costs, holders),
        )
        for group in groups
    ]


def _makers(graph: OnnxGraph, groups: Sequence[OperatorGroup]) -> dict[str, str]:
    """Return the group that makes each tensor."""
    return {
        name: group.name
        for group in groups
        for i in group.members
        for name in graph.operators[i].outputs
        if name
    }


def _read(graph: OnnxGraph, group: OperatorGroup) -> list[str]:
    """Return the tensors that a group reads and that are no constants, each once."""
    names = (name for i in group.members for name in graph.operators[i].inputs)
    return [name for name in dict.fromkeys(names) if name not in graph.constants]


def _sent(
    graph: OnnxGraph, groups: Sequence[OperatorGroup], made: Mapping[str, str], reads: Sequence[list[str]]
) -> dict[str, dict[str, float]]:
    """Return the bytes that each group reads of each earlier one.

    Edges with equal bytes out of a group would carry one tensor; if several tensors leave it, the first
    edge is given the next larger number.
    """
    tensors: dict[tuple[str, str], set[str]] = {}
    for group, names in zip(groups, reads, strict=True):
        for name in names:
            if made.get(name, group.name) != group.name:
                tensors.setdefault((made[name], group.name), set()).add(name)
    found: dict[str, dict[str, float]] = {group.name: {} for group in groups}
    leaving: dict[str, list[tuple[str, set[str]]]] = {}
    for (source, target), names_of in tensors.items():
        found[target][source] = float(sum(graph.tensors[name].nbytes for name in names_of))
        leaving.setdefault(source, []).append((target, names_of))
    for source, edges in leaving.items():
        equal = len({found[target][source] for target, _ in edges}) == 1
        if equal and any(names_of != edges[0][1] for _, names_of in edges):
            first = found[edges[0][0]]
            first[source] = math.nextafter(first[source], math.inf)
    return found


def _parameters(graph: OnnxGraph, group: OperatorGroup) -> list[str]:
    names = (name for i in group.members for name in parameters_of(graph.operators[i], graph))
    return list(dict.fromkeys(names))


def _held(graph: OnnxGraph, group: OperatorGroup, holders: Mapping[str, list[str]]) -> tuple[float, int]:
    """Return bytes and number of the parameters that a group is the first to read."""
    first = [name for name in _parameters(graph, group) if holders[name][0] == group.name]
    found = [graph.tensors[name] for name in first if name in graph.tensors]
    return float(sum(each.nbytes for each in found)), sum(each.count for each in found)


def _more(
    graph: OnnxGraph, group: OperatorGroup, costs: Sequence[OperatorCost], holders: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Return the further fields of a node."""
    own = [costs[i] for i in group.members]
    shared = [
        name for name in _parameters(graph, group) if len(holders[name]) > 1 and _is_weight(graph, name)
    ]
    names = [graph.operators[i].name for i in group.members]
    return {
        **({NODES: names} if names != [group.name] else {}),
        "operators": [graph.operators[i].operator for i in group.members],
        "flops": math.fsum(each.flops or 0.0 for each in own),
        "bytesIn": math.fsum(each.read for each in own),
        "bytesOut": math.fsum(each.written for each in own),
        "parameterCount": _held(graph, group, holders)[1],
        **({SHARED: shared} if shared else {}),
    }


def _is_weight(graph: OnnxGraph, name: str) -> bool:
    return name in graph.initializers and name in graph.tensors and graph.tensors[name].is_weight


# The layer of each operator of an ONNX model, also of operators that an exporter gave no module.


def layer_labels(graph: OnnxGraph) -> list[str | None]:
    """Return the layer of each operator, None for an operator of no layer.

    An operator without a module belongs to a layer if it reads and is read by operators of that layer,
    directly or through others without a module.
    """
    labels = [layer_path(each.path) for each in graph.operators]
    maker = {name: i for i, each in enumerate(graph.operators) for name in each.outputs if name}
    before = [[maker[name] for name in each.inputs if name in maker] for each in graph.operators]
    after: list[list[int]] = [[] for _ in before]
    for i, makers in enumerate(before):
        for j in makers:
            after[j].append(i)
    forward = range(len(labels))
    early, late = _met(labels, before, forward), _met(labels, after, reversed(forward))
    around = [sorted(one & other) for one, other in zip(early, late, strict=True)]
    return [label or next(iter(both), None) for label, both in zip(labels, around, strict=True)]


def _met(labels: list[str | None], next_to: list[list[int]], order: Iterable[int]) -> list[set[str]]:
    """Return the layers that each operator meets first on the paths in one direction."""
    found: list[set[str]] = [set() for _ in labels]
    for i in order:
        for j in next_to[i]:
            label = labels[j]
            found[i] |= found[j] if label is None else {label}
    return found
