"""The contraction of a graph to a problem (paper, Appendix E.1), step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.devices import Devices
from partitioner.graph import Graph
from partitioner.preprocess.colocate import colocated_groups
from partitioner.preprocess.free_nodes import Groups, merge_free_nodes
from partitioner.preprocess.nets import build_nets
from partitioner.preprocess.orders import depth_first
from partitioner.preprocess.precedence import merge_cycles, precedence_pairs, relabelled
from partitioner.preprocess.problem import Floats, Ints, Problem, Rows, rows_of


def contract(graph: Graph, devices: Devices, layer: Ints | None = None) -> Problem:
    """Contract a graph for chains of stages.

    In this order: colour classes (and layers, on request) become one group each; orphaned backward
    groups take part in the order through mirrored edges; strongly connected components merge;
    groups that cost nothing merge into their only neighbour; supernodes are numbered in a
    depth-first topological order.

    Parameters
    ----------
    graph, devices
        A checked workload.
    layer
        Shape (N,): layers to keep together, see :func:`partitioner.preprocess.layers.whole_layers`.

    Returns
    -------
    Problem
        Contracted as far as nothing can be lost; its `coarser` further, if there is further to go.
    """
    group = colocated_groups(graph, layer)
    group, pairs = merge_cycles(group, precedence_pairs(graph, group))
    groups = _groups(graph, devices, group)
    roomy = _is_roomy(graph, devices)
    merge_free_nodes(groups, roomy, lossless=True)
    problem = _problem(graph, devices, groups, group, pairs)
    merge_free_nodes(groups, roomy, lossless=False)
    coarser = _problem(graph, devices, groups, group, pairs) if _left(groups) < problem.n else None
    return replace(problem, coarser=coarser)


def _left(groups: Groups) -> int:
    return int((groups.parent == np.arange(len(groups.parent))).sum())


def _problem(graph: Graph, devices: Devices, groups: Groups, group: Ints, pairs: Ints) -> Problem:
    """Number the groups that are left and collect what a method needs of them."""
    kept, label = np.unique(_survivors(groups.parent), return_inverse=True)
    pairs = relabelled(pairs, label)
    order = depth_first(_rows(pairs, len(kept)), _rows(pairs[:, ::-1], len(kept)))
    rank = np.empty(len(kept), dtype=np.int64)
    rank[order] = np.arange(len(kept))
    member, pairs, kept = rank[label][group], rank[pairs], kept[order]
    return Problem(
        time=groups.time[:, :, kept],
        size=groups.size[kept],
        allowed=groups.allowed[:, kept],
        successors=_rows(pairs, len(kept)),
        predecessors=_rows(pairs[:, ::-1], len(kept)),
        nets=build_nets(graph, member, len(kept), devices.communication == "duplex"),
        member=member,
        count=np.array([min(kind.count, len(kept)) for kind in devices.kinds], dtype=np.int64),
        memory=np.array([kind.memory_limit for kind in devices.kinds]),
        pays=np.array([kind.pays_communication for kind in devices.kinds]),
        communication=devices.communication,
        relaxed_size=groups.relaxed_size[kept],
        relaxed_allowed=groups.relaxed_allowed[:, kept],
    )


def _rows(pairs: Ints, count: int) -> Rows:
    sorted_pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return rows_of(sorted_pairs[:, 0], sorted_pairs[:, 1], count)


def _is_roomy(graph: Graph, devices: Devices) -> bool:
    limits = [kind.memory_limit for kind in devices.kinds if kind.count]
    return bool(graph.size.sum() <= min(limits))


def _groups(graph: Graph, devices: Devices, group: Ints) -> Groups:
    count = int(group.max()) + 1
    size: Floats = np.bincount(group, graph.size, count).astype(np.float64)
    allowed = _allowed(graph, devices, group, count)
    time = _times(graph, devices, group, count) * allowed[:, None, :]
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for source, target in group[graph.edges].tolist():
        if source != target:
            neighbours[source].add(target)
            neighbours[target].add(source)
    return Groups(
        time=time,
        idle=time.sum(axis=(0, 1)) == 0,
        size=size,
        allowed=allowed,
        relaxed_size=size.copy(),
        relaxed_allowed=allowed.copy(),
        neighbours=neighbours,
        parent=np.arange(count),
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
    """Shape (kinds, 2, count): total time of the forward and of the backward nodes."""
    time = np.zeros((len(devices.kinds), 2, count))
    for k, kind in enumerate(devices.kinds):
        if kind.name in graph.kinds:
            row = graph.time[graph.kinds.index(kind.name)]
            np.add.at(time[k], (graph.backward.astype(int), group), row)
    return time


def _survivors(parent: Ints) -> Ints:
    while True:
        further = parent[parent]
        if np.array_equal(further, parent):
            return parent
        parent = further
