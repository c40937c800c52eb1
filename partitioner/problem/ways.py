"""All ways to run the nodes of a graph, as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.workload.alternatives import Alternative, figures
from partitioner.workload.graph import Graph

OWN = ""  # the name of the way that the node's own figures say


@dataclass(frozen=True, eq=False)
class NodeWays:
    """The W ways to run C choices: colour classes, and nodes without a colour.

    Parameters
    ----------
    owner
        Shape (C,): the supernode of each choice.
    start
        Shape (C + 1,): the ways of choice c are those from ``start[c]`` to ``start[c + 1]``.
    degree
        Shape (W,): how many devices run the choice together.
    time
        Shape (K, W): on each kind, the time of a sample.
    size, parameters, activations, workspace, weights
        Shape (W,): as the fields of :class:`partitioner.problem.pipeline.Pipeline` and `Problem.size`, on
        each device.
    link_start, link
        Shape (C + 1,) and (L,): the supernodes that each choice exchanges tensors with at an extra time.
    link_cost
        Shape (L, most ways of a choice): that time, for each way of the choice.
    name
        The name of each way, :data:`OWN` for that of the node's own figures.
    nodes
        The positions of the nodes of each choice in the user's graph.
    """

    owner: Ints
    start: Ints
    degree: Ints
    time: Floats
    size: Floats
    parameters: Floats
    activations: Floats
    workspace: Floats
    weights: Floats
    link_start: Ints
    link: Ints
    link_cost: Floats
    name: tuple[str, ...]
    nodes: tuple[Ints, ...]

    def names(self, way: Ints) -> dict[int, str]:
        """Return the names of ways of nodes by their positions, without those of own figures.

        `way` has shape (C,): the way of each choice, -1 for those that are left out.
        """
        return {
            node: self.name[w]
            for nodes, w in zip(self.nodes, way.tolist(), strict=True)
            if w >= 0 and self.name[w] != OWN
            for node in nodes.tolist()
        }


def ways_of(graph: Graph, member: Ints) -> NodeWays:
    """Return all ways to run the nodes of a graph fitted to devices; `member` has shape (N,)."""
    lone = graph.color < 0
    label = np.where(lone, len(graph.color_labels) + np.arange(len(graph)), graph.color)
    used, first, choice = np.unique(label, return_index=True, return_inverse=True)
    order = np.lexsort((first, member[first]))
    choice = np.argsort(order)[choice]
    nodes = tuple(np.flatnonzero(choice == c) for c in range(len(used)))
    names = [(OWN, *(way.name for way in graph.alternatives.get(graph.ids[each[0]], ()))) for each in nodes]
    start = np.concatenate(([0], np.cumsum([len(each) for each in names])))
    columns = [_summed(graph, each, count) for each, count in zip(nodes, map(len, names), strict=True)]
    time, size, parts, weights = (np.concatenate(each, axis=-1) for each in zip(*columns, strict=True))
    degrees = [1 if way is None else way.degree for each in nodes for way in _all(graph, int(each[0]))]
    link_start, link, cost = _links(graph, member, choice, len(used), max(map(len, names)))
    return NodeWays(
        owner=member[first][order],
        start=start,
        degree=np.array(degrees, dtype=np.int64),
        time=time,
        size=size,
        parameters=parts[0],
        activations=parts[3],
        workspace=parts[4],
        weights=weights,
        link_start=link_start,
        link=link,
        link_cost=cost,
        name=tuple(name for each in names for name in each),
        nodes=nodes,
    )


def _all(graph: Graph, node: int) -> Sequence[Alternative | None]:
    """Return all ways of a node; None for that of its own figures."""
    return (None, *graph.alternatives.get(graph.ids[node], ()))


def _summed(graph: Graph, nodes: Ints, count: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the times, sizes, parts and weights of `count` ways, summed over nodes but for workspaces."""
    time, size = np.zeros((len(graph.kinds), count)), np.zeros(count)
    parts, weights = np.zeros((len(graph.parts), count)), np.zeros(count)
    by_parts = graph.parts.any() or graph.alternatives.have_parts
    for i in nodes.tolist():
        more, sizes, memory = figures(graph.alternatives.get(graph.ids[i], ()), graph.kinds)
        own_time, own_size, own_parts = graph.time[:, i, None], graph.size[i, None], graph.parts[:, i, None]
        time += np.concatenate((own_time, more), axis=1)
        sizes = np.concatenate((own_size, sizes))
        memory = np.concatenate((own_parts, memory), axis=1)
        size += sizes
        parts[:4] += memory[:4]
        parts[4] = np.maximum(parts[4], memory[4])
        weights += memory[0] if by_parts else sizes
    return time, size, parts, weights


def _links(graph: Graph, member: Ints, choice: Ints, choices: int, most: int) -> tuple[Ints, Ints, Floats]:
    """Return the extra times of edges between supernodes, as rows by choice."""
    found: dict[tuple[int, int], Floats] = {}
    for source, target in graph.edges.tolist() if graph.alternatives else ():
        if member[source] == member[target]:
            continue
        for here, there, inward in ((target, source, True), (source, target, False)):
            for place, way in enumerate(_all(graph, here)):
                side = {} if way is None else (way.inputs if inward else way.outputs)
                extra = side.get(graph.ids[there], 0.0)
                if extra:
                    key = int(choice[here]), int(member[there])
                    found.setdefault(key, np.zeros(most))[place] += extra
    keys = sorted(found)
    count = np.bincount(np.array([c for c, _ in keys], dtype=np.int64), minlength=choices)
    link = np.array([there for _, there in keys], dtype=np.int64)
    cost = np.array([found[key] for key in keys]).reshape(len(keys), most)
    return np.concatenate(([0], np.cumsum(count))).astype(np.int64), link, cost


def blocks(graph: Graph, member: Ints, count: int) -> Bools:
    """Return which supernodes are blocks that the network repeats, shape (count,).

    These are the supernodes that hold a node of the most frequent title, if they are more than half of all;
    else all supernodes are.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 4}, names=["embedding", "layer", "layer", "layer"])
    >>> blocks(graph, np.arange(4), 4).tolist()
    [False, True, True, True]
    """
    title, times = Counter(graph.names).most_common(1)[0]
    named = np.array([name == title for name in graph.names], dtype=bool)
    found = np.bincount(member, named, count) > 0
    return found if times > 1 and 2 * found.sum() > count else np.ones(count, dtype=bool)
