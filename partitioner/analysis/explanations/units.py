"""The groups of nodes of a device that can be moved one after another."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.evaluation.shape import chain_arcs
from partitioner.workload.graph import Bools, Graph, Ints


def units_of(graph: Graph, mine: Bools) -> list[Ints]:
    """Return the groups of nodes of a device that can leave its stage one after another, first to last.

    Nodes of a colour class are in one group, and so are groups that wait for one another in a cycle. The
    order is topological for what a chain must keep in order; ties are in the order of the graph.

    Parameters
    ----------
    graph
        The graph.
    mine
        Shape (n,): whether the node is on the device.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(2, 0), (0, 1)], color=["a", None, None, "a"])
    >>> [unit.tolist() for unit in units_of(graph, np.array([True] * 4))]
    [[2], [0, 3], [1]]
    """
    unit = np.where(graph.color >= 0, graph.color, np.arange(len(graph)) + len(graph.color_labels))
    arcs = chain_arcs(graph, unit)
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_nodes_from(dict.fromkeys(unit[mine].tolist()))
    quotient.add_edges_from(unit[arcs[mine[arcs].all(axis=1)]].tolist())
    groups = nx.condensation(quotient)
    of = {each: i for i in groups for each in groups.nodes[i]["members"]}
    nodes: dict[int, list[int]] = {i: [] for i in groups}
    for node in np.flatnonzero(mine).tolist():
        nodes[of[int(unit[node])]].append(node)
    order = nx.lexicographical_topological_sort(groups, key=lambda i: nodes[i][0])
    return [np.array(nodes[i]) for i in order]
