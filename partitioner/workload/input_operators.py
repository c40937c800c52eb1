"""Operators that depend on the inputs alone: their results are sent, or every stage computes its own.

Masks, positions and rotary tables take little time, but are as large as activations. A graph says that one
device computes them and sends them to all that read them. With copies each stage computes what it reads of
them, once, and no stage sends any:

    load of a stage S  +=  time of each such operator that a node of S reads, directly or through others

In a graph with copies the first node of each stage that reads an operator has its time and its memory.
Before there are stages, each of the R classes of nodes that read an operator and share a device has 1 / R of
them: no more than their stages take together, so that bounds for this graph hold for every plan with copies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from partitioner.workload.extras import Extras
from partitioner.workload.graph import Bools, Graph, Ints
from partitioner.workload.graph_edits import with_classes_joined
from partitioner.workload.module_groups import of_inputs
from partitioner.workload.topological import all_before, topological

COPIED, SENT, AUTO = CHOICES = ("copied", "sent", "auto")
FIELD = "input_operators"  # of a graph: how it has been made


def input_operators(graph: Graph) -> Bools:
    """Return which operators every stage can compute itself, shape (n,).

    They depend on the inputs alone, may run on every kind of device, share a device with no node that
    does not, and are read by such nodes.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2), (1, 2)], parameters=[0.0, 1.0, 1.0])
    >>> input_operators(graph).tolist()
    [True, False, False]
    """
    found = of_inputs(graph) & graph.allowed.all(axis=0) & np.isfinite(graph.time).all(axis=0)
    if graph.alternatives:
        return np.zeros(len(graph), dtype=bool)
    left = len(graph) + 1
    while left > (left := int(found.sum())):
        torn = np.unique(graph.color[~found])
        found = all_before(graph.edges, found & ~np.isin(graph.color, torn[torn >= 0]))
    read = [bool(readers) for readers in _readers(graph, found)]
    return np.asarray(found & np.array(read, dtype=bool))


def has_copies(graph: Graph) -> bool:
    """Whether the stages of a graph compute what depends on inputs alone themselves."""
    return graph.extras.top.get(FIELD) == COPIED


def with_copies(graph: Graph, stage: Ints) -> Graph:
    """Return the graph in which each stage computes what it reads of operators that depend on inputs alone.

    Parameters
    ----------
    graph
        The graph; one without such operators, or with copies of them, stays as it is.
    stage
        Shape (n,): a number for the stage of every node.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2), (1, 2)], parameters=[0.0, 1.0, 1.0])
    >>> with_copies(graph, np.array([0, 0, 1])).time.tolist()
    [[0.0, 2.0, 2.0]]
    """
    return _copied(graph, stage, shared=False)


def with_shares_of_copies(graph: Graph) -> Graph:
    """Return the graph whose loads are at most those of any plan with copies: classes of readers share them.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2), (1, 2)], parameters=[0.0, 1.0, 1.0])
    >>> with_shares_of_copies(graph).time.tolist()
    [[0.0, 1.5, 1.5]]
    """
    alone = np.arange(len(graph)) + len(graph.color_labels)
    return _copied(graph, np.where(graph.color < 0, alone, graph.color), shared=True)


def _copied(graph: Graph, place: Ints, shared: bool) -> Graph:
    """Return the graph in which the first reader of an operator in each place has its time and memory.

    Parameters
    ----------
    graph
        The graph.
    place
        Shape (n,): the place of every node.
    shared
        Whether the places share an operator, or each has all of it.
    """
    chosen = input_operators(graph)
    if has_copies(graph) or not chosen.any():
        return graph
    order = np.argsort(topological(graph.edges, len(graph)))
    readers = _readers(graph, chosen)
    taken = np.vstack([graph.time, graph.size, graph.cache, graph.parts])
    made = np.where(chosen, 0.0, taken)
    together = []
    for node in np.flatnonzero(chosen).tolist():
        found = sorted(readers[node], key=lambda one: (graph.backward[one], order[one]))
        first = _first_of_each(found, place)
        if shared and not graph.backward[first[0]]:  # a stage's first reader is a forward node if one is
            first = [one for one in first if not graph.backward[one]]
        made[:, first] += taken[:, node, None] / (len(first) if shared else 1)
        together.append(np.array([node, first[0]]))
    kept = ~chosen[graph.edges[:, 0]]
    edges = [one for one, keep in zip(graph.extras.edges, kept.tolist(), strict=False) if keep]
    top = {**graph.extras.top, FIELD: COPIED}
    kinds = len(graph.kinds)
    found_graph = replace(
        graph,
        time=made[:kinds],
        size=made[kinds],
        cache=made[kinds + 1],
        parts=made[kinds + 2 :],
        edges=graph.edges[kept],
        cost=graph.cost[kept],
        extras=Extras(top, graph.extras.nodes, edges),
    )
    return with_classes_joined(found_graph, together)


def _first_of_each(nodes: Iterable[int], place: Ints) -> list[int]:
    """Return the first node of each place."""
    found: dict[int, int] = {}
    for node in nodes:
        found.setdefault(int(place[node]), node)
    return list(found.values())


def _readers(graph: Graph, chosen: Bools) -> list[set[int]]:
    """Return for each chosen operator the other nodes that read it, directly or through chosen ones."""
    found: list[set[int]] = [set() for _ in range(len(graph))]
    place = np.argsort(topological(graph.edges, len(graph)))[graph.edges[:, 0]]
    for node, target in graph.edges[np.argsort(-place)].tolist():  # the last producers first
        if chosen[node]:
            found[node] |= found[target] if chosen[target] else {target}
    return found
