"""The layers that a graph is annotated with, as far as they can be kept together."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner import Graph


def open_layers(graph: Graph) -> list[int]:
    """Layers that a path leaves and comes back to through another layer.

    To keep such a layer on one device would pull the other one there too. In the published BERT-12
    files it is the one that holds both the word embedding and the head: with it kept together all
    of the network is a single node.

    Parameters
    ----------
    graph
        Its forward part is looked at; nodes without a layer belong to whatever surrounds them.
    """
    forward: nx.DiGraph[int] = nx.DiGraph()
    forward.add_edges_from((u, v) for u, v in graph.edges.tolist() if not graph.backward[v])
    return [layer for layer in range(len(graph.layer_labels)) if _encloses_another(graph, forward, layer)]


def without_layers(graph: Graph, layers: list[int]) -> Graph:
    """The graph without the annotation of these layers."""
    return replace(graph, layer=np.where(np.isin(graph.layer, layers), -1, graph.layer))


def _encloses_another(graph: Graph, forward: nx.DiGraph[int], layer: int) -> bool:
    members = set(np.flatnonzero(graph.layer == layer).tolist()) & set(forward)
    after = set().union(*(nx.descendants(forward, node) for node in members))
    before = set().union(*(nx.ancestors(forward, node) for node in members))
    return any(graph.layer[node] not in (-1, layer) for node in after & before)
