"""The tensors between supernodes as nets (hypergraph view of communication)."""

from __future__ import annotations

import numpy as np

from partitioner.graph import Graph
from partitioner.preprocess.problem import Ints, Nets, rows_of


def build_nets(graph: Graph, member: Ints, count: int, keep_sources: bool) -> Nets:
    """Collect the nets of the contracted graph.

    Parameters
    ----------
    graph
        The user's graph: a node's output is one tensor if all its edges cost the same, else one
        tensor an edge (paper, Appendix E.1).
    member
        Shape (N,): supernode of every node.
    count
        How many supernodes there are.
    keep_sources
        Keep nets of equal pins apart if different supernodes make them, as the duplex model needs.
        Otherwise they merge, their costs added.
    """
    merged: dict[tuple[int, ...], float] = {}
    for source, users, cost in _tensors(graph, member.tolist()):
        touched = sorted(users | {source})
        if len(touched) > 1 and cost > 0:
            key = (source if keep_sources else touched[0], *touched)
            merged[key] = merged.get(key, 0.0) + cost
    keys = list(merged)
    owner = np.repeat(np.arange(len(keys)), [len(key) - 1 for key in keys])
    pins = np.array([pin for key in keys for pin in key[1:]], dtype=np.int64)
    return Nets(
        pins=rows_of(owner, pins, len(keys)),
        of_node=rows_of(pins, owner, count),
        cost=np.array(list(merged.values()), dtype=np.float64),
        source=np.array([key[0] for key in keys], dtype=np.int64),
    )


def _tensors(graph: Graph, member: list[int]) -> list[tuple[int, set[int], float]]:
    """Source, consumers (both as supernodes) and cost of every tensor."""
    outgoing: dict[int, list[tuple[int, float]]] = {}
    for (source, target), cost in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True):
        outgoing.setdefault(source, []).append((member[target], cost))
    tensors = []
    for source, edges in outgoing.items():
        if len({cost for _, cost in edges}) == 1:
            tensors.append((member[source], {user for user, _ in edges}, edges[0][1]))
        else:
            tensors += [(member[source], {user}, cost) for user, cost in edges]
    return tensors
