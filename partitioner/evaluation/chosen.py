"""A graph with the figures of the alternatives that a solution chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.alternatives import Alternative, figures
from partitioner.workload.graph import Floats, Graph, Ints
from partitioner.workload.graph_validation import node_name

NONE: Mapping[Any, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Chosen:
    """A graph whose times and memory are those of chosen alternatives.

    Parameters
    ----------
    graph
        The graph; nodes without a choice have their own figures.
    degree
        Shape (n,): how many devices run each node together.
    surcharge
        Shape (2, m): the time in addition to its cost that the consumer and the producer of each edge pay.
    """

    graph: Graph
    degree: Ints
    surcharge: Floats


def choose(graph: Graph, names: Mapping[Any, str]) -> Chosen:
    """Return the graph with the figures of the alternatives that are named for some of its nodes.

    Raises
    ------
    WorkloadError
        If an id is not that of a node, a name is not that of an alternative of the node, or nodes of a colour
        class are to run in different ways.
    """
    degree, surcharge = np.ones(len(graph), dtype=np.int64), np.zeros((2, len(graph.edges)))
    if not names:
        return Chosen(graph, degree, surcharge)
    ways = _ways(graph, names)
    place = np.array(list(ways), dtype=np.int64)
    time, size, parts = graph.time.copy(), graph.size.copy(), graph.parts.copy()
    time[:, place], size[place], parts[:, place] = figures(list(ways.values()), graph.kinds)
    degree[place] = [way.degree for way in ways.values()]
    for edge, (source, target) in enumerate(graph.edges.tolist()):
        if target in ways:
            surcharge[0, edge] = ways[target].inputs.get(graph.ids[source], 0.0)
        if source in ways:
            surcharge[1, edge] = ways[source].outputs.get(graph.ids[target], 0.0)
    return Chosen(replace(graph, time=time, size=size, parts=parts), degree, surcharge)


def _ways(graph: Graph, names: Mapping[Any, str]) -> dict[int, Alternative]:
    """Return the chosen alternatives by the position of the node."""
    if not isinstance(names, Mapping):
        rule = "must be a mapping from node id to the name of an alternative"
        raise WorkloadError([Flaw("alternatives", "", shown(names), rule)])
    found, flaws = {}, []
    for node, name in names.items():
        if node not in graph.position:
            flaws.append(Flaw("alternatives", "node", shown(node), "is not the id of a node of the graph"))
            continue
        i = graph.position[node]
        known = {way.name: way for way in graph.alternatives.get(node, ())}
        if name in known:
            found[i] = known[name]
        else:
            rule = f"must be the name of an alternative of the node; it has {', '.join(known) or 'none'}"
            flaws.append(Flaw(node_name(graph, i), "alternative", shown(name), rule))
    flaws = flaws or _torn_classes(graph, names)
    if flaws:
        raise WorkloadError(flaws)
    return found


def _torn_classes(graph: Graph, names: Mapping[Any, str]) -> list[Flaw]:
    """Return a flaw for each node that is to run in another way than a node of the same colour class."""
    first: dict[int, int] = {}
    flaws = []
    for i in np.flatnonzero(graph.color >= 0).tolist():
        example = first.setdefault(int(graph.color[i]), i)
        own, other = names.get(graph.ids[i]), names.get(graph.ids[example])
        if own != other:
            rule = f"must be that of {node_name(graph, example)}, of the same colour class: {shown(other)}"
            flaws.append(Flaw(node_name(graph, i), "alternative", shown(own), rule))
    return flaws


def refuse_alternatives(names: Mapping[Any, str], where: str) -> None:
    """Raise if a solution names alternatives where only the nodes' own figures can be used.

    Raises
    ------
    WorkloadError
        Naming `where`.
    """
    if names:
        rule = f"{where} uses the own figures of nodes only"
        raise WorkloadError([Flaw("alternatives", "", f"{len(names)} nodes", rule)])
