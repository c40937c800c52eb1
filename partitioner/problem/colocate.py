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
    labels = [label for label in (graph.color, *classes) if (label >= 0).any()]
    if not labels:
        return np.arange(len(graph))
    joined = _joined(labels)
    alone = np.arange(len(graph)) + joined.max() + 1
    _, first, number = np.unique(np.where(joined < 0, alone, joined), return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number])


def _joined(labels: Sequence[Ints]) -> Ints:
    """Return one class for each node, shape (N,), -1 for none: classes that share a node are one class."""
    if len(labels) == 1:
        return labels[0]
    counts = [int(label.max()) + 1 for label in labels]
    firsts = [sum(counts[:number]) for number in range(len(labels))]
    numbered = zip(labels, firsts, strict=True)
    every = np.array([np.where(label < 0, -1, label + first) for label, first in numbered])
    own = every.max(axis=0)
    shared: nx.Graph[int] = nx.Graph()
    shared.add_nodes_from(np.unique(every[every >= 0]).tolist())
    for row in every:
        bonds = np.stack((row, own))[:, (row >= 0) & (row != own)]
        shared.add_edges_from(np.unique(bonds, axis=1).T.tolist())
    class_of = np.full(sum(counts) + 1, -1)  # the last place is that of nodes without a class
    for number, component in enumerate(nx.connected_components(shared)):
        class_of[list(component)] = number
    return np.asarray(class_of[own])
