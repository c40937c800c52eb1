"""The rules that the alternatives of a graph's nodes must obey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, shown
from partitioner.workload.alternatives import AMOUNTS, Alternative
from partitioner.workload.devices import MAX_COUNT, is_amount, number_rule
from partitioner.workload.graph_validation import node_name

if TYPE_CHECKING:
    from partitioner.workload.graph import Graph

Names = dict[str, int]


def alternative_flaws(graph: Graph) -> list[Flaw]:
    """Return every rule that the alternatives of a graph break; the rest of the graph is valid."""
    flaws = [
        Flaw("alternatives", "node", shown(node), "is not the id of a node of the graph")
        for node in graph.alternatives
        if node not in graph.position
    ]
    if flaws or not graph.alternatives:
        return flaws
    sources, targets = _neighbours(graph)
    for node, ways in graph.alternatives.items():
        i = graph.position[node]
        for name, times in Counter(shown(way.name) for way in ways).items():
            if times > 1:
                rule = "is the name of more than one alternative of the node"
                flaws.append(Flaw(node_name(graph, i), "alternatives: name", name, rule))
        for way in ways:
            where = f"{node_name(graph, i)}, alternative {shown(way.name)}"
            flaws += [Flaw(where, *found) for found in _broken(way, graph.kinds, sources[i], targets[i])]
    return flaws or _class_flaws(graph)


def _neighbours(graph: Graph) -> tuple[list[set[Any]], list[set[Any]]]:
    """Return the ids of the producers and of the consumers of every node."""
    sources: list[set[Any]] = [set() for _ in graph.ids]
    targets: list[set[Any]] = [set() for _ in graph.ids]
    for source, target in graph.edges.tolist():
        sources[target].add(graph.ids[source])
        targets[source].add(graph.ids[target])
    return sources, targets


def _broken(
    way: Alternative, kinds: tuple[str, ...], sources: set[Any], targets: set[Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield field, value and rule of every flaw of an alternative."""
    if not isinstance(way.name, str) or not way.name:
        yield "name", shown(way.name), "must be a text that is not empty"
    if not is_count(way.degree, 1, MAX_COUNT):
        yield "degree", shown(way.degree), f"must be an integer of at least 1 and at most {MAX_COUNT:,}"
    for name in AMOUNTS:
        yield from _amount_flaws(name, getattr(way, name))
    if not isinstance(way.times, Mapping) or set(way.times) != set(kinds):
        yield "times", shown(way.times), f"must have the times on {', '.join(kinds)}"
    else:
        for kind, time in way.times.items():
            yield from _amount_flaws(f"times[{kind}]", time)
    for field, known, word in (("inputs", sources, "reads from"), ("outputs", targets, "sends to")):
        given = getattr(way, field)
        if not isinstance(given, Mapping):
            yield field, shown(given), "must be a mapping from node id to time"
            continue
        for node, time in given.items():
            if node not in known:
                yield field, shown(node), f"must be the id of a node that this node {word}"
            yield from _amount_flaws(f"{field}[{shown(node)}]", time)


def _amount_flaws(name: str, value: object) -> Iterator[tuple[str, str, str]]:
    if not is_amount(value):
        yield name, shown(value), number_rule(value)


def _class_flaws(graph: Graph) -> list[Flaw]:
    """Return a flaw for each node whose alternatives have other names or degrees than those of its class."""
    first: dict[int, tuple[int, Names]] = {}
    flaws = []
    for i in np.flatnonzero(graph.color >= 0).tolist():
        names = {way.name: way.degree for way in graph.alternatives.get(graph.ids[i], ())}
        example, wanted = first.setdefault(int(graph.color[i]), (i, names))
        if names != wanted:
            rule = f"must have the names and degrees of {node_name(graph, example)}, of the same colour class"
            flaws.append(Flaw(node_name(graph, i), "alternatives", shown(names), rule))
    return flaws
