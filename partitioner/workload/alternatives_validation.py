"""The rules that the alternatives of a graph's nodes must obey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, shown
from partitioner.workload.alternatives import AMOUNTS, Alternative, Alternatives
from partitioner.workload.device_validation import MAX_COUNT, is_amount, number_rule

Names = dict[str, int]


def alternative_flaws(
    alternatives: Alternatives,
    kinds: Sequence[str],
    ids: Sequence[int | str],
    edges: NDArray[np.int64],
    color: NDArray[np.int64],
) -> list[Flaw]:
    """Return every rule that alternatives break; the other arguments are fields of a valid graph."""
    known = set(ids)
    flaws = [
        Flaw("alternatives", "node", shown(node), "is not the id of a node of the graph")
        for node in alternatives
        if node not in known
    ]
    if flaws or not alternatives:
        return flaws
    sources, targets = _neighbours(ids, edges)
    for node, ways in alternatives.items():
        for name, times in Counter(shown(way.name) for way in ways).items():
            if times > 1:
                rule = "is the name of more than one alternative of the node"
                flaws.append(Flaw(f"node {shown(node)}", "alternatives: name", name, rule))
        for way in ways:
            where = f"node {shown(node)}, alternative {shown(way.name)}"
            broken = _broken(way, kinds, sources.get(node, set()), targets.get(node, set()))
            flaws += [Flaw(where, *found) for found in broken]
    return flaws or _class_flaws(alternatives, ids, color)


def _neighbours(
    ids: Sequence[int | str], edges: NDArray[np.int64]
) -> tuple[dict[Any, set[Any]], dict[Any, set[Any]]]:
    """Return the ids of the producers and of the consumers of every node that has some."""
    sources: dict[Any, set[Any]] = {}
    targets: dict[Any, set[Any]] = {}
    for source, target in edges.tolist():
        sources.setdefault(ids[target], set()).add(ids[source])
        targets.setdefault(ids[source], set()).add(ids[target])
    return sources, targets


def _broken(
    way: Alternative, kinds: Sequence[str], sources: set[Any], targets: set[Any]
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


def _class_flaws(
    alternatives: Alternatives, ids: Sequence[int | str], color: NDArray[np.int64]
) -> list[Flaw]:
    """Return a flaw for each node whose alternatives have other names or degrees than those of its class."""
    first: dict[int, tuple[int | str, Names]] = {}
    flaws = []
    for i in np.flatnonzero(color >= 0).tolist():
        names = {way.name: way.degree for way in alternatives.get(ids[i], ())}
        example, wanted = first.setdefault(int(color[i]), (ids[i], names))
        if names != wanted:
            rule = f"must have the names and degrees of node {shown(example)}, of the same colour class"
            flaws.append(Flaw(f"node {shown(ids[i])}", "alternatives", shown(names), rule))
    return flaws
