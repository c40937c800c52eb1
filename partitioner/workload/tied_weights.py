"""Tied weights in training: copies on all devices that read them, or all their readers on one device.

Nodes i and j read a parameter of w bytes, and j is on another device than i. As a graph says it, the
gradient goes from j to i once a batch. Megatron and torchtitan train copies: both devices have the parameter,
its gradient and the optimizer's state, and add up the gradients by an all-reduce. In a ring of two each
device sends w and receives w, so that the gradient's edge costs twice as much:

    copied      j holds w, its gradient and its state, too; the edge costs 2 w / (bandwidth microbatches)
    together    i and j are of one colour class, and w counts once

Of r nodes on r devices the gradients go from one to the next, which costs (r - 1) times the edge of two; a
ring of r would cost 2 (r - 1) / r of it for each device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import OptionError, shown
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.device_validation import is_amount
from partitioner.workload.extras import TIES, Extras
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.graph_edits import bytes_per_time, with_classes_joined
from partitioner.workload.module_groups import shared_parameters

COPIED, TOGETHER, AUTO = CHOICES = ("copied", "together", "auto")
HELD = MEMORY_PARTS[:3]  # parameters, gradients, state of the optimizer


def has_ties(graph: Graph) -> bool:
    """Whether a graph for training says what its tied weights take; what a file says may be anything.

    Examples
    --------
    >>> has_ties(Graph.from_arrays({"gpu": [1.0]}, backward=True, extras=Extras({"ties": 3})))
    False
    """
    top = graph.extras.top
    ties, edges = top.get(TIES), {tuple(pair) for pair in graph.edges.tolist()}
    if not (isinstance(ties, Mapping) and graph.backward.any() and is_count(top.get("microbatches", 1))):
        return False
    copies, exchanges = ties.get("copies"), ties.get("exchanges")
    if not (isinstance(copies, list) and isinstance(exchanges, list) and "counted" in ties):
        return False
    held = all(_is_row(graph, row, 1, len(HELD)) for row in copies)
    if not held or not all(_is_row(graph, row, 2, 1) for row in exchanges):
        return False
    return all((graph.position[row[0]], graph.position[row[1]]) in edges for row in exchanges)


def _is_row(graph: Graph, row: object, names: int, amounts: int) -> bool:
    """Whether a row of a file is a list of ids of nodes, and numbers that are not negative."""
    if not isinstance(row, list) or len(row) != names + amounts:
        return False
    known = all(isinstance(name, int | str) and name in graph.position for name in row[:names])
    return known and all(is_amount(each) for each in row[names:])


def with_tied_weights(graph: Graph, tied: str) -> Graph:
    """Return a graph for training whose tied weights are copied to all devices that read them, or are not.

    Parameters
    ----------
    graph
        The graph; one without tied weights stays as it is.
    tied
        ``"copied"`` or ``"together"``: nodes that read one parameter share a device.

    Raises
    ------
    OptionError
        If the graph does not say what its tied weights take, or has been made otherwise.

    Examples
    --------
    >>> from partitioner.workload.layer import Layer
    >>> layers = [Layer(name, 1.0, 2.0, parameters=4e6, shared={"word": 4e6}) for name in ("first", "last")]
    >>> graph = Graph.chain(layers, bandwidth=1e9)
    >>> with_tied_weights(graph, "copied").cost.max(), with_tied_weights(graph, "together").color.tolist()
    (np.float64(8.0), [0, 0, 0, 0])
    """
    words = f"tied = {shown(tied)}"
    done = graph.extras.top.get("tied")
    if done == tied or not any(map(len, shared_parameters(graph).values())):
        return graph
    if not graph.backward.any():
        raise OptionError(f"{words}: is for training, and the graph has no backward nodes")
    if done is not None or graph.extras.top.get("zero"):
        name = "tied" if done is not None else "zero"
        raise OptionError(f"{words}: the graph has been made with {name} = {shown(graph.extras.top[name])}")
    if not has_ties(graph):
        raise OptionError(f"{words}: the graph does not say what its tied weights take: make it again")
    found = _copied(graph, words) if tied == COPIED else _together(graph)
    top = {**graph.extras.top, "tied": tied}
    return replace(found, extras=Extras(top, graph.extras.nodes, graph.extras.edges))


def exchanged_once_in(graph: Graph, microbatches: int) -> Graph:
    """Return a graph whose gradients of tied weights are exchanged once in a number of samples.

    Examples
    --------
    >>> from partitioner.workload.layer import Layer
    >>> layers = [Layer(name, 1.0, 2.0, parameters=4e6, shared={"word": 4e6}) for name in ("first", "last")]
    >>> exchanged_once_in(Graph.chain(layers, bandwidth=1e9), 8).cost.max()
    np.float64(0.5)
    """
    top = graph.extras.top
    if not has_ties(graph) or top.get("microbatches", 1) == microbatches:
        return graph
    ways, before = (2.0 if top.get("tied") == COPIED else 1.0), float(top.get("microbatches", 1))
    found = _with_exchanges(graph, ways, before / microbatches - 1, f"microbatches = {microbatches}")
    extras = Extras({**top, "microbatches": microbatches}, graph.extras.nodes, graph.extras.edges)
    return replace(found, extras=extras)


def _copied(graph: Graph, words: str) -> Graph:
    """Return the graph whose nodes hold their copies, with gradients that go both ways."""
    found = _with_exchanges(graph, 1.0, 1.0, words)
    return found if graph.extras.top[TIES]["counted"] else replace(found, parts=graph.parts + _copies(graph))


def _with_exchanges(graph: Graph, ways: float, more: float, words: str) -> Graph:
    """Return the graph in which exchanges take `more` times as long in addition.

    Parameters
    ----------
    graph
        The graph.
    ways
        How many times the bytes of a gradient are in the cost of its edge.
    more
        What is added, as a part of what exchanges take; negative if they take less.
    words
        What is asked for, for the message.
    """
    cost = graph.cost.copy()
    for source, target, nbytes in graph.extras.top[TIES]["exchanges"]:
        pair = [graph.position[source], graph.position[target]]
        edges = np.flatnonzero((graph.edges == pair).all(axis=1))
        once = ways * nbytes * _time_per_byte(graph, words)
        edge = edges[np.abs(cost[edges] - once).argmin()]
        found = max(cost[edge] + more * once, 0.0)
        others = np.delete(cost, edge)[np.delete(graph.edges[:, 0], edge) == pair[0]]
        while found in others:  # edges of equal cost out of a node would carry one tensor
            found = np.nextafter(found, np.inf)
        cost[edge] = found
    return replace(graph, cost=cost)


def _together(graph: Graph) -> Graph:
    """Return the graph in which the readers of each parameter share a device and hold it once."""
    counted = graph.extras.top[TIES]["counted"]
    parts = np.maximum(graph.parts - _copies(graph), 0.0) if counted else graph.parts
    return with_classes_joined(replace(graph, parts=parts), list(shared_parameters(graph).values()))


def _time_per_byte(graph: Graph, words: str) -> float:
    """Return the time that a byte which is exchanged once a batch takes a sample."""
    top = graph.extras.top
    per_byte = 1.0 if top.get("bandwidth") is None else 1 / bytes_per_time(graph, words)
    return per_byte / float(top.get("microbatches", 1))


def _copies(graph: Graph) -> Floats:
    """Return the memory of the copies of tied weights, shape (parts, n)."""
    found = np.zeros_like(graph.parts)
    for node, *held in graph.extras.top[TIES]["copies"]:
        found[: len(HELD), graph.position[node]] += held
    return found
