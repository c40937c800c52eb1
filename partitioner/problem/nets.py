"""The tensors between supernodes as nets of a hypergraph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partitioner.problem.arrays import Bools, Ints, Rows, rows_of
from partitioner.problem.problem import Nets
from partitioner.workload.graph import Floats, Graph


def has_one_output(graph: Graph) -> Bools:
    """Return for each node, shape (N,), whether its outgoing edges carry one tensor.

    They do if all of them cost the same; else each edge carries a tensor of its own (paper, Appendix E.1).

    Examples
    --------
    >>> fork = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (0, 2), (1, 3), (1, 2)], [1.0, 1.0, 1.0, 2.0])
    >>> has_one_output(fork).tolist()
    [True, False, False, False]
    """
    source = graph.edges[:, 0]
    least, most = np.full(len(graph), np.inf), np.full(len(graph), -np.inf)
    np.minimum.at(least, source, graph.cost)
    np.maximum.at(most, source, graph.cost)
    return np.asarray(least == most)


NONE = np.zeros(0, dtype=np.int64)


class _Tensors(NamedTuple):
    """Tensors between supernodes: the producer of each, the pass in which it is produced, and its cost.

    `pins` has the producer and the readers of each tensor, ascending, and `read` the first pass in which each
    of these reads it.
    """

    source: Ints
    made: Ints
    pins: Rows
    read: Ints
    cost: Floats


def build_nets(graph: Graph, member: Ints, count: int, detail: str) -> Nets:
    """Return the nets of the contracted graph.

    Parameters
    ----------
    graph
        The user's graph: a node's output is one tensor if all its edges have the same cost, else one
        tensor for each edge (paper, Appendix E.1).
    member
        Shape (N,): supernode of every node.
    count
        How many supernodes there are.
    detail
        Which tensors share a net: ``"pins"``: tensors with the same supernodes; ``"sources"``: these if they
        also have the same producer, for the duplex model and levels of devices; ``"passes"``: these if they
        are also produced and read in the same passes, for GPipe.
    """
    tensors = _tensors(graph, member, count, by_pass=detail == "passes")
    label, last = _labels(_keys(tensors, detail))
    pins = [tensors.pins.row(t) for t in last.tolist()]
    read = [tensors.read[tensors.pins.start[t] : tensors.pins.start[t + 1]] for t in last.tolist()]
    owner = np.repeat(np.arange(len(last)), [len(row) for row in pins])
    items = np.concatenate([NONE, *pins])
    return Nets(
        pins=rows_of(owner, items, len(last)),
        of_node=rows_of(items, owner, count),
        cost=np.bincount(label, tensors.cost, len(last)).astype(np.float64),
        source=tensors.source[last],
        made=tensors.made[last],
        read=np.concatenate([NONE, *read]),
    )


def nets_by_edge(graph: Graph, member: Ints, count: int) -> Nets:
    """Return the nets of a graph whose every edge carries a tensor of its own; as :func:`build_nets`.

    Examples
    --------
    >>> fork = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2)], 0.5)
    >>> nets_by_edge(fork, np.arange(3), 3).pins.lists()
    [[0, 1], [0, 2]]
    """
    ends = np.sort(member[graph.edges], axis=1)
    pairs = ends[:, 0] * count + ends[:, 1]
    key, place = np.unique(pairs[ends[:, 0] != ends[:, 1]], return_inverse=True)
    cost = np.bincount(place, graph.cost[ends[:, 0] != ends[:, 1]], len(key)).astype(np.float64)
    pins = np.stack(np.divmod(key, count), axis=1).ravel()
    owner = np.repeat(np.arange(len(key)), 2)
    zeros = np.zeros(len(key), dtype=np.int64)
    of_node = rows_of(pins, owner, count)
    return Nets(rows_of(owner, pins, len(key)), of_node, cost, pins[::2], zeros, np.zeros_like(pins))


def no_nets(count: int) -> Nets:
    """Return the nets of `count` supernodes that exchange no tensors."""
    empty = rows_of(NONE, NONE, 0)
    return Nets(empty, rows_of(NONE, NONE, count), np.zeros(0), NONE, NONE, NONE)


def _keys(tensors: _Tensors, detail: str) -> list[Hashable]:
    """Return a key for each tensor; tensors with equal keys become one net, with the sum of their costs."""
    items, start = tensors.pins.items, tensors.pins.start.tolist()
    if detail == "passes":
        items = np.where(items == tensors.source[tensors.pins.owners()], -1, 2 * items + tensors.read)
    rows = [items[first:end].tobytes() for first, end in pairwise(start)]
    if detail == "pins":
        return list(rows)
    if detail == "sources":
        return list(zip(tensors.source.tolist(), rows, strict=True))
    return list(zip(tensors.source.tolist(), tensors.made.tolist(), rows, strict=True))


def _labels(keys: Sequence[Hashable]) -> tuple[Ints, Ints]:
    """Return the number of each key in order of first appearance, and the last position of each number."""
    number: dict[Hashable, int] = {}
    label = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    last = np.zeros(len(number), dtype=np.int64)
    last[label] = np.arange(len(keys))
    return label, last


def forward_outputs(graph: Graph, member: Ints, count: int) -> Floats:
    """Return the cost of all forward tensors that a supernode produces for others, shape (count,).

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
    largest, total = np.zeros((2, len(graph)))
    np.maximum.at(largest, source[leaves], cost[leaves])
    np.add.at(total, source[leaves], cost[leaves])
    moved = np.where(has_one_output(graph), largest, total)
    return np.bincount(member, moved, count).astype(np.float64)


def _tensors(graph: Graph, member: Ints, count: int, by_pass: bool) -> _Tensors:
    """Return every tensor that has a cost and a reader elsewhere; passes are 0 unless `by_pass`."""
    consumer = graph.edges[:, 1]
    when = (graph.backward & by_pass).astype(np.int64)
    number, maker, cost = _numbered(graph)
    source, made = member[maker], when[maker]
    key, place = np.unique(number * count + member[consumer], return_inverse=True)
    read = np.ones(len(key), dtype=np.int64)
    np.minimum.at(read, place, when[consumer])
    owner, pin = np.divmod(key, count)
    counts = (np.bincount(owner, pin != source[owner], len(cost)) > 0) & (cost > 0)
    absent = np.bincount(owner, pin == source[owner], len(cost)) == 0
    owner = np.concatenate((owner, np.flatnonzero(absent)))
    pin, read = (
        np.concatenate((pin, source[absent])),
        np.concatenate((read, np.zeros(absent.sum(), np.int64))),
    )
    order = np.lexsort((pin, owner))
    order = order[counts[owner[order]]]
    owner = (np.cumsum(counts) - 1)[owner[order]]
    pins = rows_of(owner, pin[order], int(counts.sum()))
    return _Tensors(source[counts], made[counts], pins, read[order], cost[counts])


def _numbered(graph: Graph) -> tuple[Ints, Ints, Floats]:
    """Return the number of the tensor on each edge, and the producer and the cost of each tensor.

    Tensors are numbered in the order in which their producers first appear in the edges.
    """
    producer, m = graph.edges[:, 0], len(graph.edges)
    first = np.full(len(graph), m)
    np.minimum.at(first, producer, np.arange(m))
    edge = np.where(has_one_output(graph)[producer], 0, np.arange(m))
    _, example, number = np.unique(first[producer] * (m + 1) + edge, return_index=True, return_inverse=True)
    return number, producer[example], np.asarray(graph.cost[example], dtype=np.float64)
