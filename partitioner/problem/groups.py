"""Groups of nodes that must share a device: by colour and other classes, and while they are being merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.problem.arrays import Floats, Ints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph


@dataclass
class Groups:
    """The g groups while they are merged, as arrays over groups; `parent` leads to the remaining group.

    Parameters
    ----------
    time, idle
        Shape (K, 2, g): forward and backward time of each group, 0 on kinds that may not run it. Shape (g,):
        whether the group takes no time and its device cannot affect the cost of other groups. Only idle
        groups are merged, so that `time` does not change.
    size, allowed
        Memory (g,) and allowed kinds (K, g), including all groups that were merged into each group.
    relaxed_size, relaxed_allowed
        The same without the groups that were merged at the risk of losing the optimum.
    neighbours
        The groups that share an edge with each group that takes no time.
    parent
        The group that each group was merged into, or the group itself.
    counted
        Groups that take no time but whose device may matter for replicas or memory.
    """

    time: Floats
    idle: NDArray[np.bool_]
    size: Floats
    allowed: NDArray[np.bool_]
    relaxed_size: Floats
    relaxed_allowed: NDArray[np.bool_]
    neighbours: list[set[int]]
    parent: Ints
    counted: NDArray[np.bool_]


def new_groups(graph: Graph, devices: Devices, group: Ints, passes: int) -> Groups:
    """Return the groups before any merge; `group` has shape (N,)."""
    count = int(group.max()) + 1
    size: Floats = np.bincount(group, graph.size, count).astype(np.float64)
    allowed = _allowed(graph, devices, group, count)
    time = _times(graph, devices, group, count) * allowed[:, None, :]
    neighbours: list[set[int]] = [set() for _ in range(count)]
    idle = time.sum(axis=(0, 1)) == 0
    ends = group[graph.edges]
    for source, target in ends[idle[ends].any(axis=1) & (ends[:, 0] != ends[:, 1])].tolist():
        neighbours[source].add(target)
        neighbours[target].add(source)
    return Groups(
        time=time,
        idle=idle & ~_shifting(graph, group, count) if passes == 2 else idle,
        size=size,
        allowed=allowed,
        relaxed_size=size.copy(),
        relaxed_allowed=allowed.copy(),
        neighbours=neighbours,
        parent=np.arange(count),
        counted=np.zeros(count, dtype=bool),
    )


def _allowed(graph: Graph, devices: Devices, group: Ints, count: int) -> np.ndarray:
    rows = []
    for kind in devices.kinds:
        if not kind.count or kind.name not in graph.kinds:
            rows.append(np.zeros(count, dtype=bool))
        else:
            row = graph.allowed[graph.kinds.index(kind.name)]
            rows.append(np.bincount(group, ~row, count) == 0)
    return np.array(rows)


def _times(graph: Graph, devices: Devices, group: Ints, count: int) -> Floats:
    """Return the total time of the forward and of the backward nodes, shape (kinds, 2, count)."""
    time = np.zeros((len(devices.kinds), 2, count))
    for k, kind in enumerate(devices.kinds):
        if kind.name in graph.kinds:
            row = graph.time[graph.kinds.index(kind.name)]
            np.add.at(time[k], (graph.backward.astype(int), group), row)
    return time


def _shifting(graph: Graph, group: Ints, count: int) -> np.ndarray:
    """Return the groups with a forward node that reads a tensor which a backward node elsewhere reads, too.

    On the device of that backward node such a group shifts the transfer to the forward pass. Under GPipe this
    can be an advantage, even for a node that takes no time.
    """
    source, target = graph.edges[:, 0], graph.edges[:, 1]
    fetched = group[source] != group[target]
    late = np.zeros(len(graph), dtype=bool)
    late[source[fetched & graph.backward[target]]] = True
    shifting = np.zeros(count, dtype=bool)
    shifting[group[target[fetched & ~graph.backward[target] & late[source]]]] = True
    return shifting


def survivors(parent: Ints) -> Ints:
    """Return the group that each group was finally merged into, in the shape of `parent`."""
    while True:
        further = parent[parent]
        if np.array_equal(further, parent):
            return parent
        parent = further


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
