"""The layers of a graph whose nodes can share a device."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.base.errors import OptionError
from partitioner.problem.arrays import Ints
from partitioner.workload.graph import Graph


def whole_layers(graph: Graph) -> tuple[Ints, tuple[str, ...]]:
    """Return the layers whose nodes can be kept on one device (paper, Appendix E.3).

    If a path leaves a layer and returns to it through another layer, the first can be contiguous only
    together with the other. In the published BERT-12 files, for example, one layer contains the word
    embedding and the head, and would include the whole network. The nodes of such layers are not kept
    together.

    Returns
    -------
    layer
        Shape (N,): the class of every node, -1 for none.
    notes
        A sentence that names the layers that were left out; empty if there are none.

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
    """Return the layers that a forward path leaves and returns to through another layer.

    In topological order, every node gets the set of layers on the paths to it, and the set of those that a
    path has left for another layer (both as bits). Nodes without a layer do not separate layers.
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
