"""A graph whose nodes are in a topological order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.workload.graph import Graph, Ints


def in_order(graph: Graph, order: Ints) -> Graph:
    """Return the graph with its nodes in a topological order, and its edges sorted by consumer."""
    edges = np.argsort(order)[graph.edges].reshape(-1, 2)
    by_consumer = np.argsort(edges[:, 1], kind="stable")
    nodes = order.tolist()
    return replace(
        graph,
        ids=tuple(graph.ids[i] for i in nodes),
        time=graph.time[:, order],
        allowed=graph.allowed[:, order],
        size=graph.size[order],
        backward=graph.backward[order],
        color=graph.color[order],
        layer=graph.layer[order],
        edges=edges[by_consumer],
        cost=graph.cost[by_consumer],
        names=tuple(graph.names[i] for i in nodes),
        extras=type(graph.extras)(top=graph.extras.top),
        parts=graph.parts[:, order],
        cache=graph.cache[order],
    )
