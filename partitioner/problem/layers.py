"""The layers that a graph is annotated with, as far as they can be kept together."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.base.errors import OptionError
from partitioner.problem.arrays import Ints
from partitioner.workload.graph import Graph


def whole_layers(graph: Graph) -> tuple[Ints, tuple[str, ...]]:
    """Choose the layers to keep together (paper, Appendix E.3).

    A layer that a path leaves and comes back to through another layer cannot be kept together without
    the other: in the published BERT-12 files one layer holds the word embedding and the head, and
    would swallow the network. The nodes of such layers stay apart.

    Returns
    -------
    layer
        Shape (N,): the class of every node, -1 for none.
    notes
        A sentence on the layers that were left out, if any.

    Raises
    ------
    OptionError
        If no node has a layer.
    """
    if not graph.layer_labels:
        raise OptionError("granularity = 'layer': the graph gives no node a layer")
    opened = _open_layers(graph)
    layer = np.where(np.isin(graph.layer, opened), -1, graph.layer)
    names = ", ".join(str(graph.layer_labels[number]) for number in opened)
    note = f"nodes of layers that enclose others stay apart: {names}"
    return layer, (note,) if opened else ()


def _open_layers(graph: Graph) -> list[int]:
    """Layers that a forward path leaves and comes back to through another layer.

    In topological order, every node learns the layers before it, and those that some path to it has
    left through another layer (as bit sets). Nodes without a layer belong to what surrounds them.
    """
    forward: nx.DiGraph[int] = nx.DiGraph()
    forward.add_edges_from((u, v) for u, v in graph.edges.tolist() if not graph.backward[v])
    layer = graph.layer.tolist()
    seen: dict[int, int] = {}
    left: dict[int, int] = {}
    opened: set[int] = set()
    for node in nx.topological_sort(forward):
        own = 1 << layer[node] if layer[node] >= 0 else 0
        before = gone = 0
        for earlier in forward.predecessors(node):
            before |= seen[earlier]
            gone |= left[earlier]
        if gone & own:
            opened.add(layer[node])
        left[node] = gone | (before & ~own if own else 0)
        seen[node] = before | own
    return sorted(opened)
