"""The modules of a graph: its layers, and each node without a layer on its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from partitioner.workload.graph import Bools, Graph, Ints
from partitioner.workload.topological import topological

MOST_DIGITS = 18  # of a number in a name; longer ones are texts
SEPARATORS = tuple("._/:")  # between the name of a list and the numbers of its members
NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL | re.ASCII)


@dataclass(frozen=True, eq=False)
class Modules:
    """The `m` modules of a graph of `n` nodes, in forward order.

    Parameters
    ----------
    names
        The label of each layer, and the title of each forward node without a layer.
    of
        Shape (n,): the module of every node; -1 for backward nodes that no edge joins to a module.
    """

    names: tuple[str, ...]
    of: Ints


def modules_of(graph: Graph) -> Modules:
    """Return the modules in a topological order of the forward pass, ties as in the graph.

    A backward node without a layer belongs to the module of the first forward node of its colour; without
    one, to that of a node that it reads, or else of a node that reads it.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": 1.0}, ids=["norm", 2, 1], edges=[(1, 2), (2, "norm")],
    ...                           layer=[None, "layers.0", "layers.0"])
    >>> found = modules_of(graph)
    >>> found.names, found.of.tolist()
    (('layers.0', 'norm'), [1, 0, 0])
    """
    key = _keys(graph)
    forward = np.flatnonzero(~graph.backward)
    own, first, number = np.unique(key[forward], return_index=True, return_inverse=True)
    by_file = np.argsort(np.argsort(first))  # the modules, numbered as they first occur
    module = np.full(len(graph), -1, dtype=np.int64)
    module[forward] = by_file[number]
    late = graph.backward & np.isin(key, own)
    module[late] = by_file[np.searchsorted(own, key[late])]
    order = _forward_order(graph, module, len(own))
    place = np.argsort(order)
    firsts = forward[np.sort(first)][order]
    return Modules(
        tuple(_title(graph, i) for i in firsts.tolist()),
        _with_orphans(graph, np.where(module < 0, -1, place[module])) if len(own) else module,
    )


def without_layers(graph: Graph) -> Graph:
    """Return the graph without layers, so that every forward node is a module with the node's title.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 2}, layer=["norm", "norm"], names=["pow", "mean"])
    >>> modules_of(without_layers(graph)).names
    ('pow', 'mean')
    """
    return replace(graph, layer=np.full(len(graph), -1, dtype=graph.layer.dtype), layer_labels=())


def module_starts(graph: Graph) -> Ints:
    """Return the first forward node of each module, in the topological order of these nodes.

    That is the order in which a program begins the modules if the graph has its nodes as the program does.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(1, 0), (0, 2)], layer=["b", "a", "b"])
    >>> module_starts(graph).tolist()
    [1, 0]
    """
    nodes = topological(graph.edges, len(graph))
    forward = nodes[~graph.backward[nodes]]
    return np.asarray(forward[np.sort(np.unique(modules_of(graph).of[forward], return_index=True)[1])])


def interrupted(graph: Graph) -> Bools:
    """Return for each module whether nodes of others come between its forward nodes, as if called twice.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (1, 2)], layer=["pool", "conv", "pool"])
    >>> modules_of(graph).names, interrupted(graph).tolist()
    (('pool', 'conv'), [True, False])
    """
    nodes, modules = topological(graph.edges, len(graph)), modules_of(graph)
    runs = [module for module, _ in groupby(modules.of[nodes[~graph.backward[nodes]]].tolist())]
    return np.asarray(np.bincount(runs, minlength=len(modules.names)) > 1)


def repeated_block(names: tuple[str, ...]) -> range:
    """Return the positions of the repeated layers of a model: the most names that differ in a number only.

    The numbers ascend; other modules may stand between them. The range is empty if there are no numbers. Of
    families of one size, members of a list come before others.

    Examples
    --------
    >>> repeated_block(("embed", "layers.0", "layers.1", "norm", "head"))
    range(1, 3)
    """
    families: dict[tuple[str, str], list[int]] = {}
    for i, name in enumerate(names):
        prefix, number, suffix = split_number(name)
        if number is not None:
            families.setdefault((prefix, suffix), []).append(i)
    largest = max(families.items(), key=lambda each: (len(each[1]), is_list(each[0][0])), default=("", []))[1]
    return range(largest[0], largest[-1] + 1) if largest else range(0)


def is_list(prefix: str) -> bool:
    """Whether what stands before a number is the name of a list.

    Examples
    --------
    >>> is_list("model.layers."), is_list("conv")
    (True, False)
    """
    return prefix.endswith(SEPARATORS)


def split_number(name: str) -> tuple[str, int | None, str]:
    """Return what is before the last number of a name, that number, and what is after it.

    Examples
    --------
    >>> split_number("layers.12"), split_number("block7/mlp"), split_number("norm")
    (('layers.', 12, ''), ('block', 7, '/mlp'), ('norm', None, ''))
    """
    found = NUMBERED.fullmatch(name)
    if found is None or len(found[2]) > MOST_DIGITS:
        return name, None, ""
    return found[1], int(found[2]), found[3]


def _title(graph: Graph, i: int) -> str:
    return str(graph.layer_labels[graph.layer[i]]) if graph.layer[i] >= 0 else graph.names[i]


def _keys(graph: Graph) -> Ints:
    """Return a number for each node that is equal for the nodes of a module, shape (n,); -1 for none."""
    layers, alone = len(graph.layer_labels), np.arange(len(graph))
    key = np.where(graph.layer >= 0, graph.layer, np.where(graph.backward, -1, layers + alone))
    twin = np.full(len(graph.color_labels) + 1, -1, dtype=np.int64)
    coloured = np.flatnonzero(~graph.backward & (graph.color >= 0))[::-1]
    twin[graph.color[coloured]] = key[coloured]  # of several forward nodes of a colour, the first one counts
    return np.where(key < 0, twin[graph.color], key)


def _with_orphans(graph: Graph, module: Ints) -> Ints:
    """Return the modules, where a node without one gets that of a node that it reads, or that reads it."""
    if (module >= 0).all():
        return module
    found, order = module.tolist(), topological(graph.edges, len(graph)).tolist()
    for ends, nodes in ((graph.edges, order), (graph.edges[:, ::-1], order[::-1])):
        before: dict[int, list[int]] = {}
        for source, target in ends.tolist():
            before.setdefault(target, []).append(source)
        for node in nodes:
            if found[node] < 0:
                found[node] = next((found[i] for i in before.get(node, ()) if found[i] >= 0), -1)
    return np.array(found, dtype=np.int64)


def _forward_order(graph: Graph, module: Ints, count: int) -> Ints:
    """Return the modules in topological order; those that enclose others stand as in the graph."""
    nodes = topological(graph.edges, len(graph))
    place = np.empty(len(graph), dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    forward = np.flatnonzero(~graph.backward)
    begins = np.full(count, len(graph))
    np.minimum.at(begins, module[forward], place[forward])
    rank = np.argsort(np.argsort(begins, kind="stable"))
    arcs = graph.edges[~graph.backward[graph.edges].any(axis=1)]
    pairs = np.unique(rank[module[arcs]], axis=0) if len(arcs) else arcs
    sorted_ = topological(pairs[pairs[:, 0] != pairs[:, 1]], count)
    rest = np.setdiff1d(np.arange(count), sorted_)
    return np.asarray(np.argsort(rank)[np.concatenate((sorted_, rest))] if count else sorted_)
