"""The shape of a placement: a chain of stages, convex parts, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.workload.graph import Graph

SHAPES = ("chain", "convex", "free")


def is_ordered(split: str) -> bool:
    """Whether the parts of a split of that name are ordered, as the stages of a pipeline are.

    Examples
    --------
    >>> [split for split in SHAPES if is_ordered(split)]
    ['chain']
    """
    return split == "chain"


def is_contiguous(split: str) -> bool:
    """Whether the forward parts of a split of that name must be contiguous, but are not ordered."""
    return split == "convex"


@dataclass(frozen=True)
class Shape:
    """The shape of a placement: chain, convex or free.

    Parameters
    ----------
    name
        The strictest of ``"chain"``, ``"convex"`` and ``"free"`` that holds. Chain: the devices in
        use can be ordered such that every forward edge, and the mirror image of every edge of an
        orphaned backward node (one without a forward node of its colour), stays on its device or leads to
        a later one. Convex: the forward nodes of every device are contiguous (paper, Definition 3.1).
    forward_convex, backward_convex
        Whether every device's part is contiguous, in the forward graph and in the backward graph.
    order
        The devices in use in the order of the chain; empty if the placement is not a chain.
    torn_forward, torn_backward
        The devices whose part is not contiguous.
    """

    name: str
    forward_convex: bool
    backward_convex: bool
    order: tuple[str, ...]
    torn_forward: tuple[str, ...]
    torn_backward: tuple[str, ...]

    @property
    def is_chain(self) -> bool:
        """Whether the parts form a chain of stages."""
        return self.name == "chain"


def placement_shape(graph: Graph, device: NDArray[np.int64], names: Sequence[str]) -> Shape:
    """Return the shape of the placement that puts node i on ``names[device[i]]``."""
    forward = tuple(names[d] for d in sorted(returns(graph, device, ~graph.backward)))
    backward = tuple(names[d] for d in sorted(returns(graph, device, graph.backward)))
    order = _chain(graph, device)
    name = "chain" if order is not None else "free" if forward else "convex"
    return Shape(name, not forward, not backward, tuple(names[d] for d in order or ()), forward, backward)


def _chain(graph: Graph, device: NDArray[np.int64]) -> list[int] | None:
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_nodes_from(np.unique(device).tolist())
    quotient.add_edges_from(_between(chain_arcs(graph, device), device))
    if not nx.is_directed_acyclic_graph(quotient):
        return None
    return list(nx.lexicographical_topological_sort(quotient))


def chain_arcs(graph: Graph, device: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pairs of nodes on two devices, of which a chain has the first on the earlier device.

    The shape is (arcs, 2).
    """
    source, target = graph.edges[:, 0], graph.edges[:, 1]
    orphan = _orphans(graph)
    mirrored = graph.backward[source] & (orphan[source] | orphan[target])
    arcs = np.concatenate((graph.edges[~graph.backward[target]], graph.edges[mirrored][:, ::-1]))
    return np.asarray(arcs[device[arcs[:, 0]] != device[arcs[:, 1]]])


def _orphans(graph: Graph) -> NDArray[np.bool_]:
    """Return which nodes are backward nodes without a forward node of their colour (paper, Appendix E.1)."""
    with_forward = np.zeros(len(graph.color_labels) + 1, dtype=bool)
    with_forward[graph.color[~graph.backward]] = True
    with_forward[-1] = False  # nodes without a colour
    return graph.backward & ~with_forward[graph.color]


def returns(graph: Graph, home: NDArray[np.int64], part: NDArray[np.bool_]) -> dict[int, int]:
    """Return the devices whose nodes in `part` are not contiguous in the graph induced by `part`.

    The result maps each such device to a node at which a path returns to it. `home` has the device of each
    node. In topological order, every node gets the set of devices (as bits) that some path to it has left;
    if its own device is in the set, that path returns.
    """
    edges = graph.edges[part[graph.edges].all(axis=1)]
    if goes_one_way(edges, home):
        return {}
    start, target, missing, queue = _rows(len(graph), edges)
    place, left, shares = home.tolist(), [0] * len(graph), len(np.unique(home[edges]))
    found: dict[int, int] = {}
    for node in queue:
        here = 1 << place[node]
        if left[node] & here and found.setdefault(place[node], node) == node and len(found) == shares:
            break
        for after in target[start[node] : start[node + 1]]:
            left[after] |= left[node] | (here if place[after] != place[node] else 0)
            missing[after] -= 1
            if not missing[after]:
                queue.append(after)
    return found


def goes_one_way(edges: NDArray[np.int64], home: NDArray[np.int64]) -> bool:
    """Whether devices can be ordered such that every edge stays on a device or leads to a later one."""
    return bool(nx.is_directed_acyclic_graph(nx.DiGraph(_between(edges, home))))


def _between(edges: NDArray[np.int64], home: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the pairs of different devices that edges lead from and to, each once, in increasing order."""
    ends = home[edges[home[edges[:, 0]] != home[edges[:, 1]]]]
    count = int(home.max(initial=0)) + 1
    first, last = np.divmod(np.unique(ends[:, 0] * count + ends[:, 1]), count)
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _rows(n: int, edges: NDArray[np.int64]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the targets of each node as rows, the number of edges into each node, and the sources.

    Rows are given by their starts and their items. Sources are nodes with edges out of them and none into
    them, in the order in which the edges name them. An edge that is given twice counts once.
    """
    distinct = np.sort(np.unique(edges[:, 0] * n + edges[:, 1], return_index=True)[1])
    edges = edges[distinct]
    by_source = edges[np.argsort(edges[:, 0], kind="stable")]
    start = np.searchsorted(by_source[:, 0], np.arange(n + 1)).tolist()
    missing = np.bincount(edges[:, 1], minlength=n).tolist()
    entries = dict.fromkeys(v for v in edges[:, 0].tolist() if not missing[v])
    return start, by_source[:, 1].tolist(), missing, list(entries)
