"""The order of the forward and the backward pass, for graphs whose edges do not determine it.

Files such as PipeDream's profiles describe both passes, but no edge between them. Loads do not depend on such
edges. When operators are scheduled one by one, however, the backward pass could then begin together with the
forward pass.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.graph import Bools, Floats, Graph, Ints

ADDED = (
    "no edge leads from a forward to a backward node: each backward node waits for the forward nodes of its "
    "colour class"
)
UNKNOWN = "objective 'makespan' must know what the backward pass waits for: no edge leads from a forward to "


def order_is_open(graph: Graph) -> bool:
    """Whether there are forward and backward nodes, but no edge from a forward to a backward node."""
    source, target = graph.backward[graph.edges].reshape(-1, 2).T
    return bool(graph.backward.any() and not graph.backward.all() and not (~source & target).any())


def with_pass_order(graph: Graph) -> Graph:
    """Return the graph with edges added from forward to backward nodes if there are none.

    Each backward node reads an output of every forward node of its colour class. Among the nodes of a class
    that are connected by edges, edges from the last forward nodes to the first backward nodes suffice. Such
    an edge carries the output tensor of the forward node. It costs nothing if that node has no output tensor,
    and nothing on a single device.

    Raises
    ------
    WorkloadError
        If no colour class contains nodes of both passes, or if a backward edge leads in the direction of the
        forward edges between the same classes: then the order of the backward pass is not known.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, color=["a", "a"], backward=[False, True])
    >>> with_pass_order(graph).edges.tolist()
    [[0, 1]]
    """
    if not order_is_open(graph):
        return graph
    _check_direction(graph)
    added = _pairs(graph)
    if not len(added):
        rule = UNKNOWN + "a backward node, and no colour class holds both"
        raise WorkloadError([Flaw("graph", "edges", "", rule)])
    extras = graph.extras
    if extras.edges:
        extras = replace(extras, edges=[*extras.edges, *({} for _ in added)])
    return replace(
        graph,
        edges=np.concatenate((graph.edges, added)),
        cost=np.concatenate((graph.cost, _output_cost(graph)[added[:, 0]])),
        extras=extras,
    )


def _check_direction(graph: Graph) -> None:
    """Raise if a backward edge leads in the direction of the forward pass."""
    ends = graph.color[graph.edges].reshape(-1, 2)
    source = graph.backward[graph.edges[:, 0]]
    between = (ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])
    forward, backward = (set(map(tuple, ends[between & (source == b)].tolist())) for b in (False, True))
    for i in np.flatnonzero(between & source).tolist():
        pair = tuple(ends[i].tolist())
        if pair in forward and pair[::-1] not in backward:
            where = " -> ".join(shown(graph.ids[v]) for v in graph.edges[i])
            rule = (
                f"{UNKNOWN}a backward node, and this backward edge leads in the direction of the forward "
                "pass; gradients flow against it"
            )
            raise WorkloadError([Flaw(f"edge {where}", "", "", rule)])


def _pairs(graph: Graph) -> Ints:
    """Return pairs of last forward and first backward nodes of each class with both, shape (pairs, 2)."""
    inside = _inside(graph)
    last, first = (np.ones(len(graph), dtype=bool) for _ in range(2))
    last[graph.edges[inside, 0]] = False
    first[graph.edges[inside, 1]] = False
    classes: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for i in np.flatnonzero((graph.color >= 0) & np.where(graph.backward, first, last)).tolist():
        classes[int(graph.color[i]), bool(graph.backward[i])].append(i)
    found = [
        pair
        for (color, backward), nodes in classes.items()
        if not backward
        for pair in product(nodes, classes.get((color, True), ()))
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _inside(graph: Graph) -> Bools:
    """Return whether each edge joins two nodes of one pass and one colour class, shape (m,)."""
    color, backward = (column[graph.edges].reshape(-1, 2) for column in (graph.color, graph.backward))
    return np.asarray((color[:, 0] == color[:, 1]) & (color[:, 0] >= 0) & (backward[:, 0] == backward[:, 1]))


def _output_cost(graph: Graph) -> Floats:
    """Return the common cost of the edges out of each node, shape (n,); 0 if costs differ or it has none."""
    least, most = np.full(len(graph), np.inf), np.zeros(len(graph))
    np.minimum.at(least, graph.edges[:, 0], graph.cost)
    np.maximum.at(most, graph.edges[:, 0], graph.cost)
    return np.where(least == most, most, 0.0)
