"""Which nodes must share a device: colour classes and, on request, layers."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.graph import Graph
from partitioner.preprocess.problem import Ints


def colocated_groups(graph: Graph, layer: Ints | None = None) -> Ints:
    """Number the groups of nodes that share a device.

    Parameters
    ----------
    graph
        The user's graph; nodes of one colour class are together (paper, Appendix E.1).
    layer
        Shape (N,): further classes to keep together (Appendix E.3), -1 for none.

    Returns
    -------
    Ints
        Shape (N,): the group of every node, from 0.
    """
    bonds: nx.Graph[object] = nx.Graph()
    bonds.add_nodes_from(range(len(graph)))
    bonds.add_edges_from((i, ("color", c)) for i, c in enumerate(graph.color.tolist()) if c >= 0)
    if layer is not None:
        bonds.add_edges_from((i, ("layer", c)) for i, c in enumerate(layer.tolist()) if c >= 0)
    group = np.empty(len(graph), dtype=np.int64)
    for number, component in enumerate(nx.connected_components(bonds)):
        group[[i for i in component if isinstance(i, int)]] = number
    return group
