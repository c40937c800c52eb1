"""Nodes that belong together beyond a module: ends, tied weights, and what the inputs alone determine."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from partitioner.workload.extras import INPUTS_ALONE, SHARED
from partitioner.workload.graph import Bools, Graph, Ints, NodeId
from partitioner.workload.modules import Modules, interrupted, module_starts, modules_of, repeated_block
from partitioner.workload.topological import all_before


def whole_groups(graph: Graph, what: Collection[str]) -> list[Ints]:
    """Return the groups of nodes that must share a device if `what` is whole, see `Constraints.whole`.

    Examples
    --------
    >>> layer = ["tokens", "positions", "layers.0", "layers.0", "head"]
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 5}, layer=layer)
    >>> [nodes.tolist() for nodes in whole_groups(graph, ("modules", "ends"))]
    [[2, 3], [0, 1]]
    """
    if not what:
        return []
    modules = modules_of(graph)
    found = [np.flatnonzero(modules.of == i) for i in range(len(modules.names)) if "modules" in what]
    if "ends" in what:
        block = repeated_block(modules.names)
        ends = ((modules.of >= 0) & (modules.of < block.start), modules.of >= block.stop)
        found += [np.flatnonzero(end) for end in ends if block]
    all_ties = "ties" in what or ("training_ties" in what and bool(graph.backward.any()))
    shared = shared_parameters(graph).values() if all_ties or "layer_ties" in what else ()
    found += [nodes for nodes in shared if all_ties or in_block(modules, nodes)]
    return [nodes for nodes in found if len(nodes) > 1]


def with_the_module_before(graph: Graph) -> list[Ints]:
    """Return the start of each interrupted module with that of the module before it.

    A tool that cuts a program before a module would cut it before each part of an interrupted one.
    """
    of, again = modules_of(graph).of, interrupted(graph)
    return [np.array(pair) for pair in pairwise(module_starts(graph).tolist()) if again[of[pair[1]]]]


def in_block(modules: Modules, nodes: Ints) -> bool:
    """Whether one of the nodes belongs to the numbered layers of the model."""
    block = repeated_block(modules.names)
    return bool(((modules.of[nodes] >= block.start) & (modules.of[nodes] < block.stop)).any())


def shared_parameters(graph: Graph) -> dict[str, Ints]:
    """Return the nodes that hold each parameter which several nodes share, by the parameter's name."""
    found: dict[str, list[int]] = {}
    for i, extra in enumerate(graph.extras.nodes):
        names = extra.get(SHARED, ())
        for name in names if isinstance(names, list | tuple) else ():
            found.setdefault(str(name), []).append(i)
    return {name: np.array(nodes, dtype=np.int64) for name, nodes in found.items() if len(nodes) > 1}


def edges_of_inputs(graph: Graph) -> Bools:
    """Return which edges carry only what the inputs of the model determine, shape (edges,).

    Such are masks, positions and rotary tables, which any stage can compute itself. The edges of nodes that
    depend on the inputs alone are among them, see :func:`of_inputs`, and those that a node lists in its field
    ``ofInputs`` by the ids of the nodes that read them.

    Examples
    --------
    >>> from partitioner.workload.extras import Extras
    >>> extras = Extras(nodes=[{"ofInputs": [2]}, {}, {}])
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2), (1, 2)], extras=extras)
    >>> edges_of_inputs(graph).tolist()
    [False, True, False]
    """
    found = of_inputs(graph)[graph.edges[:, 0]]
    listed = {
        (i, graph.position[target])
        for i, extra in enumerate(graph.extras.nodes)
        for target in _listed(extra.get(INPUTS_ALONE))
        if target in graph.position
    }
    if listed:
        found |= np.array([pair in listed for pair in map(tuple, graph.edges.tolist())], dtype=bool)
    return found


def _listed(value: object) -> Collection[NodeId]:
    """Return the ids of nodes in a field of an input, which may hold anything."""
    return [one for one in value if isinstance(one, int | str)] if isinstance(value, list | tuple) else []


def of_inputs(graph: Graph) -> Bools:
    """Return which forward nodes depend on the inputs of the model alone, shape (n,).

    Neither they nor the nodes before them have parameters, or share those of others. If any node has the
    field ``ofInputs``, those that forward nodes read list all of these. None is known to do so if no node of
    the graph has parameters among the parts of its memory.
    """
    if not graph.parts[0].any():
        return np.zeros(len(graph), dtype=bool)
    bare = (graph.parts[0] == 0) & ~graph.backward
    fields = graph.extras.nodes
    bare &= np.array([not extra.get(SHARED) for extra in fields] or True)
    if any(extra.get(INPUTS_ALONE) for extra in fields):
        listed = [set(_listed(extra.get(INPUTS_ALONE))) for extra in fields]
        for source, target in graph.edges[~graph.backward[graph.edges[:, 1]]].tolist():
            bare[source] &= graph.ids[target] in listed[source]
    return all_before(graph.edges, bare)
