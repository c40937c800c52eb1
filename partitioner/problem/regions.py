"""The graphs in which a convex split must be contiguous: of the user's nodes, not of the supernodes."""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Region
from partitioner.workload.graph import Graph


def region_of(graph: Graph, member: Ints, backward: bool) -> Region:
    """Return the forward or the backward part of the graph, without nodes that do not affect contiguity.

    A node whose only successor (or only predecessor) is in the same supernode is merged with it: this adds
    and removes no path between supernodes. Merging a whole colour class could add paths.

    Parameters
    ----------
    graph
        The user's graph.
    member
        Shape (N,): supernode of every node.
    backward
        Whether to return the backward part instead of the forward part.
    """
    inside = graph.backward == backward
    edges = graph.edges[inside[graph.edges].all(axis=1)]
    if not (member[edges[:, 0]] == member[edges[:, 1]]).any():
        return _unshrunk(np.flatnonzero(inside), edges, member)
    part: nx.DiGraph[int] = nx.DiGraph()
    part.add_nodes_from(np.flatnonzero(inside).tolist())
    part.add_edges_from(edges.tolist())
    _shrink(part, member)
    number = {node: i for i, node in enumerate(part)}
    kept = [(number[u], number[v]) for u, v in part.edges]
    return Region(member[list(part)], np.array(kept, dtype=np.int64).reshape(-1, 2))


def _unshrunk(nodes: Ints, edges: Ints, member: Ints) -> Region:
    """Return the region of all nodes without merges; edges are ordered by producer, without repetition."""
    number = np.zeros(len(member), dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    ends = number[edges].reshape(-1, 2)
    first = np.unique(ends[:, 0] * len(member) + ends[:, 1], return_index=True)[1]
    first = np.sort(first)
    return Region(member[nodes], ends[first[np.argsort(ends[first, 0], kind="stable")]])


def _shrink(part: nx.DiGraph[int], member: Ints) -> None:
    """Merge nodes into their only successor or only predecessor where these share a supernode."""
    waiting = list(part)
    while waiting:
        node = waiting.pop()
        if node not in part:
            continue
        after, before = list(part.successors(node)), list(part.predecessors(node))
        if len(after) == 1 and member[after[0]] == member[node]:
            part.add_edges_from((u, after[0]) for u in before)
        elif len(before) == 1 and member[before[0]] == member[node]:
            part.add_edges_from((before[0], v) for v in after)
        else:
            continue
        part.remove_node(node)
        waiting += before + after
