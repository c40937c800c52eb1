"""Groups of nodes that must share a device: by colour classes and, on request, by other classes."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from partitioner.problem.arrays import Ints
from partitioner.workload.graph import Graph


def colocated_groups(graph: Graph, classes: Sequence[Ints] = ()) -> Ints:
    """Return the number of each node's group; nodes of a group must share a device.

    Parameters
    ----------
    graph
        The user's graph; nodes of one colour class share a device (paper, Appendix E.1).
    classes
        Shape (N,) each: further classes whose nodes share a device, such as layers (Appendix E.3); -1 for
        none.

    Returns
    -------
    Ints
        Shape (N,): the group of every node, from 0.
    """
    if all((label < 0).all() for label in (graph.color, *classes)):
        return np.arange(len(graph))
    bonds: nx.Graph[object] = nx.Graph()
    bonds.add_nodes_from(range(len(graph)))
    bonds.add_edges_from((i, ("color", c)) for i, c in enumerate(graph.color.tolist()) if c >= 0)
    for number, label in enumerate(classes):
        bonds.add_edges_from((i, (number, c)) for i, c in enumerate(label.tolist()) if c >= 0)
    group = np.empty(len(graph), dtype=np.int64)
    for number, component in enumerate(nx.connected_components(bonds)):
        group[[i for i in component if isinstance(i, int)]] = number
    return group
