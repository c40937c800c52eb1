"""The precedence between groups of nodes that the stages of a chain must respect."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from partitioner.problem.arrays import Bools, Ints, rows_of
from partitioner.problem.orders import postorder
from partitioner.workload.graph import Graph


def precedence_pairs(graph: Graph, group: Ints, sequence: Ints) -> Ints:
    """Return the pairs (earlier, later) of different groups, shape (p, 2), without repetition.

    A forward edge is a pair. A colour class without a forward node is *orphaned*. Every backward edge from or
    to an orphaned class is a pair in reverse, because the backward pass runs through the stages in reverse
    (paper, Appendix E.1). Other edges do not order stages. Successive nodes of the `sequence` are pairs.
    """
    source, target = graph.edges[:, 0], graph.edges[:, 1]
    orphaned = graph.backward & ((graph.color < 0) | ~np.isin(graph.color, graph.color[~graph.backward]))
    touches_orphan = orphaned[source] | orphaned[target]
    forward = ~graph.backward[target]
    mirrored = graph.backward[source] & touches_orphan
    earlier = np.concatenate((source[forward], target[mirrored], sequence[:-1]))
    later = np.concatenate((target[forward], source[mirrored], sequence[1:]))
    pairs = np.stack((group[earlier], group[later]), axis=1)
    return distinct(pairs[pairs[:, 0] != pairs[:, 1]])


def merge_cycles(group: Ints, pairs: Ints) -> tuple[Ints, Ints]:
    """Merge every strongly connected component of groups, which a chain cannot separate.

    Returns
    -------
    group, pairs
        The merged group of every node, and the pairs of merged groups, which are acyclic.
    """
    count = int(group.max()) + 1
    left = postorder(rows_of(pairs[:, 0], pairs[:, 1], count).lists(), range(count))
    merged = np.empty(count, dtype=np.int64)
    merged[left] = np.arange(count)
    if (merged[pairs[:, 1]] < merged[pairs[:, 0]]).all():  # no cycle: what comes later is left sooner
        return merged[group], relabelled(pairs, merged)
    digraph: nx.DiGraph[int] = nx.DiGraph()
    digraph.add_nodes_from(range(count))
    digraph.add_edges_from(pairs.tolist())
    for number, component in enumerate(nx.strongly_connected_components(digraph)):
        merged[list(component)] = number
    return merged[group], relabelled(pairs, merged)


def relabelled(pairs: Ints, label: Ints) -> Ints:
    """Return the pairs with new labels, without pairs of equal labels and without repetition."""
    pairs = label[pairs]
    return distinct(pairs[pairs[:, 0] != pairs[:, 1]])


def distinct(pairs: Ints) -> Ints:
    """Return the pairs in lexicographical order, without repetition; no number may be negative.

    Examples
    --------
    >>> distinct(np.array([[1, 0], [0, 2], [1, 0]])).tolist()
    [[0, 2], [1, 0]]
    """
    base = int(pairs.max(initial=0)) + 1
    key = np.sort(pairs[:, 0] * base + pairs[:, 1])
    key = key[np.concatenate((np.ones(len(key[:1]), dtype=bool), key[1:] != key[:-1]))]
    return np.stack(np.divmod(key, base), axis=1)


def ancestors(before: Sequence[Sequence[int]]) -> Bools:
    """Return whether supernode u precedes v or is v, shape (n, n): row v, column u.

    Parameters
    ----------
    before
        The supernodes that directly precede each one; these have lower numbers.

    Examples
    --------
    >>> ancestors([[], [0], [1]]).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    above = np.eye(len(before), dtype=bool)
    for v, row in enumerate(before):
        for u in row:
            above[v] |= above[u]
    return above
