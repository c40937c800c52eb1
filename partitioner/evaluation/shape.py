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
    """Whether the parts of such a split stand in an order, as the stages of a pipeline do.

    Examples
    --------
    >>> [split for split in SHAPES if is_ordered(split)]
    ['chain']
    """
    return split == "chain"


def is_contiguous(split: str) -> bool:
    """Whether the forward parts of such a split must be contiguous without standing in an order."""
    return split == "convex"


@dataclass(frozen=True)
class Shape:
    """What a placement looks like.

    Parameters
    ----------
    name
        The strictest of ``"chain"``, ``"convex"`` and ``"free"`` that holds. Chain: the devices in
        use can be ordered such that every forward edge, and the mirror image of every edge of an
        orphaned backward node, stays or goes to a later device. Convex: the forward nodes of every
        device are contiguous (paper, Definition 3.1).
    forward_convex, backward_convex
        Whether every device's part is contiguous, in the forward graph and in the backward graph.
    order
        The devices in use in the order of the chain; empty if it is none.
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
    """Find the shape of the placement that puts node i on ``names[device[i]]``."""
    forward = tuple(names[d] for d in sorted(returns(graph, device, ~graph.backward)))
    backward = tuple(names[d] for d in sorted(returns(graph, device, graph.backward)))
    order = _chain(graph, device)
    name = "chain" if order is not None else "free" if forward else "convex"
    return Shape(name, not forward, not backward, tuple(names[d] for d in order or ()), forward, backward)


def _chain(graph: Graph, device: NDArray[np.int64]) -> list[int] | None:
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_nodes_from(np.unique(device).tolist())
    quotient.add_edges_from(np.unique(device[chain_arcs(graph, device)], axis=0).tolist())
    if not nx.is_directed_acyclic_graph(quotient):
        return None
    return list(nx.lexicographical_topological_sort(quotient))


def chain_arcs(graph: Graph, device: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shape (arcs, 2): nodes on two devices of which in a chain the first is on the earlier one."""
    source, target = graph.edges[:, 0], graph.edges[:, 1]
    orphan = _orphans(graph)
    mirrored = graph.backward[source] & (orphan[source] | orphan[target])
    arcs = np.concatenate((graph.edges[~graph.backward[target]], graph.edges[mirrored][:, ::-1]))
    return np.asarray(arcs[device[arcs[:, 0]] != device[arcs[:, 1]]])


def _orphans(graph: Graph) -> NDArray[np.bool_]:
    """Backward nodes of which no forward node has the colour (paper, Appendix E.1)."""
    with_forward = np.zeros(len(graph.color_labels) + 1, dtype=bool)
    with_forward[graph.color[~graph.backward]] = True
    with_forward[-1] = False  # nodes without a colour
    return graph.backward & ~with_forward[graph.color]


def returns(graph: Graph, home: NDArray[np.int64], part: NDArray[np.bool_]) -> dict[int, int]:
    """The homes whose share of `part` is not contiguous in the graph induced by `part`.

    Each comes with a node at which a path returns to it. In topological order, each node learns
    from which homes a path has come to it *and left* (as a bit set); meeting one of them again in
    its own home is the forbidden return.
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
    """Whether the homes can be ordered such that every edge stays in one or leads to a later one."""
    ends = home[edges[home[edges[:, 0]] != home[edges[:, 1]]]]
    count = int(home.max(initial=0)) + 1
    first, last = np.divmod(np.unique(ends[:, 0] * count + ends[:, 1]), count)
    quotient: nx.DiGraph[int] = nx.DiGraph(zip(first.tolist(), last.tolist(), strict=True))
    return bool(nx.is_directed_acyclic_graph(quotient))


def _rows(n: int, edges: NDArray[np.int64]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Where each node's targets start, the targets, how many edges come to each node, and nodes with none.

    The last are those with edges alone, as the edges name them first; edges named twice count once.
    """
    distinct = np.sort(np.unique(edges[:, 0] * n + edges[:, 1], return_index=True)[1])
    edges = edges[distinct]
    by_source = edges[np.argsort(edges[:, 0], kind="stable")]
    start = np.searchsorted(by_source[:, 0], np.arange(n + 1)).tolist()
    missing = np.bincount(edges[:, 1], minlength=n).tolist()
    entries = dict.fromkeys(v for v in edges[:, 0].tolist() if not missing[v])
    return start, by_source[:, 1].tolist(), missing, list(entries)
