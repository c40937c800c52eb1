"""The units that run without interruption: subgraphs of accelerators, given or derived, and CPU nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.shape import goes_one_way
from partitioner.workload.graph import Bools, Ints
from partitioner.workload.graph_validation import node_name


@dataclass(frozen=True, eq=False)
class Units:
    """What runs without interruption: the subgraphs of every accelerator in order, then each node of a CPU.

    Parameters
    ----------
    placed
        The placement.
    of
        Shape (n,): the unit of every node.
    device
        Shape (units,): position in `placed.names` of each unit's device.
    backward
        Shape (units,): True for units of the backward pass.
    index
        The index of each subgraph among those of its device and pass; None for a CPU node.
    """

    placed: Placed
    of: Ints
    device: Ints
    backward: Bools
    index: tuple[int | None, ...]

    @property
    def members(self) -> list[list[int]]:
        """The positions of the nodes of every unit."""
        found: list[list[int]] = [[] for _ in self.index]
        for node, unit in enumerate(self.of.tolist()):
            found[unit].append(node)
        return found


def units_of(placed: Placed, subgraphs: Mapping[Any, int] | None) -> Units:
    """Return the units, with subgraphs by the given indices or, if None, as few subgraphs as possible.

    Raises
    ------
    WorkloadError
        If an index is missing or not an integer of at least 0, or an id is not that of a node.
    """
    index = _fewest(placed) if subgraphs is None else _given(placed, subgraphs)
    device, backward = placed.device.tolist(), placed.graph.backward.tolist()
    keys = [
        (1, node, False, 0) if index[node] is None else (0, device[node], backward[node], index[node])
        for node in range(len(device))
    ]
    number = {key: unit for unit, key in enumerate(sorted(set(keys)))}
    of = np.array([number[key] for key in keys], dtype=np.int64)
    _, first = np.unique(of, return_index=True)
    indices = tuple(index[node] for node in first.tolist())
    return Units(placed, of, placed.device[first], placed.graph.backward[first], indices)


def _fewest(placed: Placed) -> list[int | None]:
    """Return for each node of an accelerator how often a path of its pass has left and returned before it."""
    graph = placed.graph
    same = graph.backward[graph.edges[:, 0]] == graph.backward[graph.edges[:, 1]]
    if goes_one_way(graph.edges[same], placed.device):
        return [0 if pays else None for pays in placed.pays[placed.device].tolist()]
    within: nx.DiGraph[int] = nx.DiGraph()
    within.add_nodes_from(range(len(graph)))
    within.add_edges_from(graph.edges[same].tolist())
    index: list[int | None] = [None] * len(graph)
    order = list(nx.topological_sort(within))
    for accelerator in np.unique(placed.device[placed.pays[placed.device]]):
        here = (placed.device == accelerator).tolist()
        count = [0] * len(graph)
        for node in order:
            index[node] = count[node] if here[node] else index[node]
            for after in within.successors(node):
                count[after] = max(count[after], count[node] + (here[node] and not here[after]))
    return index


def _given(placed: Placed, subgraphs: Mapping[Any, int]) -> list[int | None]:
    if not isinstance(subgraphs, Mapping):
        rule = "must be a mapping from node id to the index of its subgraph"
        raise WorkloadError([Flaw("subgraphs", "", shown(subgraphs), rule)])
    graph, pays = placed.graph, placed.pays[placed.device].tolist()
    flaws = [
        Flaw(f"subgraph of node {shown(node)}", "", "", "is not the id of a node of the graph")
        for node in subgraphs
        if node not in graph.position
    ]
    for i, node in enumerate(graph.ids):
        if node in subgraphs and not _is_index(subgraphs[node]):
            rule = "must be an integer of at least 0"
            flaws.append(Flaw(node_name(graph, i), "subgraph", shown(subgraphs[node]), rule))
        elif node not in subgraphs and pays[i]:
            rule = f"is on {placed.names[placed.device[i]]}, and its subgraph is not given"
            flaws.append(Flaw(node_name(graph, i), "", "", rule))
    if flaws:
        raise WorkloadError(flaws)
    return [int(subgraphs[node]) if pays[i] else None for i, node in enumerate(graph.ids)]


def _is_index(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)
