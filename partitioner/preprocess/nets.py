"""The tensors between supernodes as nets (hypergraph view of communication)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.graph import Floats, Graph
from partitioner.preprocess.problem import Ints, Nets, rows_of


class _Tensor(NamedTuple):
    """A tensor between supernodes: who makes it, in which pass, who reads it first in which pass."""

    source: int
    made: int
    read: dict[int, int]
    cost: float

    def key(self, detail: str) -> tuple[object, ...]:
        """Tensors of equal keys can share a net, their costs added."""
        pins = tuple(sorted({self.source, *self.read}))
        if detail == "pins":
            return pins
        if detail == "sources":
            return self.source, pins
        readers = tuple(sorted((pin, when) for pin, when in self.read.items() if pin != self.source))
        return self.source, self.made, readers


def build_nets(graph: Graph, member: Ints, count: int, detail: str) -> Nets:
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
    detail
        What keeps tensors apart: ``"pins"``: only what they join; ``"sources"``: who makes them too, as
        the duplex model and levels of devices need; ``"passes"``: also when they are made and read, as
        GPipe needs.
    """
    merged: dict[tuple[object, ...], _Tensor] = {}
    for tensor in _tensors(graph, member.tolist(), by_pass=detail == "passes"):
        if tensor.cost > 0 and tensor.read.keys() - {tensor.source}:
            key = tensor.key(detail)
            if key in merged:
                tensor = tensor._replace(cost=merged[key].cost + tensor.cost)
            merged[key] = tensor
    return _nets_of(list(merged.values()), count)


def no_nets(count: int) -> Nets:
    """The nets of `count` supernodes that exchange nothing."""
    return _nets_of([], count)


def _nets_of(tensors: list[_Tensor], count: int) -> Nets:
    pins = [sorted({tensor.source, *tensor.read}) for tensor in tensors]
    owner = np.repeat(np.arange(len(pins)), [len(row) for row in pins])
    items = np.array([pin for row in pins for pin in row], dtype=np.int64)
    read = [tensor.read.get(pin, 0) for tensor, row in zip(tensors, pins, strict=True) for pin in row]
    return Nets(
        pins=rows_of(owner, items, len(pins)),
        of_node=rows_of(items, owner, count),
        cost=np.array([tensor.cost for tensor in tensors], dtype=np.float64),
        source=np.array([tensor.source for tensor in tensors], dtype=np.int64),
        made=np.array([tensor.made for tensor in tensors], dtype=np.int64),
        read=np.array(read, dtype=np.int64),
    )


def forward_outputs(graph: Graph, member: Ints, count: int) -> Floats:
    """Shape (count,): what it costs to move all tensors that a supernode makes forward for others.

    Parameters
    ----------
    graph, member, count
        As in :func:`build_nets`.

    Examples
    --------
    >>> fork = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2)], 0.5)
    >>> forward_outputs(fork, np.arange(3), 3).tolist()
    [0.5, 0.0, 0.0]
    """
    source, cost = graph.edges[:, 0], graph.cost
    leaves = (member[source] != member[graph.edges[:, 1]]) & ~graph.backward[source]
    least, largest, total = np.full(len(graph), np.inf), *np.zeros((2, len(graph)))
    np.minimum.at(least, source, cost)
    np.maximum.at(largest, source, cost)
    np.add.at(total, source[leaves], cost[leaves])
    moved = np.where(least == largest, np.minimum(largest, total), total)
    return np.bincount(member, moved, count).astype(np.float64)


def _tensors(graph: Graph, member: list[int], by_pass: bool) -> list[_Tensor]:
    """Every tensor with its readers; all passes are 0 unless they are to be told apart."""
    when = (graph.backward & by_pass).astype(int).tolist()
    outgoing: dict[int, list[tuple[int, float]]] = {}
    for (source, target), cost in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True):
        outgoing.setdefault(source, []).append((target, cost))
    tensors = []
    for source, edges in outgoing.items():
        together = len({cost for _, cost in edges}) == 1
        for users, cost in (
            [([v for v, _ in edges], edges[0][1])] if together else [([v], c) for v, c in edges]
        ):
            read: dict[int, int] = {}
            for user in users:
                read[member[user]] = min(read.get(member[user], 1), when[user])
            tensors.append(_Tensor(member[source], when[source], read, cost))
    return tensors
