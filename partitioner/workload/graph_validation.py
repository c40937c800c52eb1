"""The rules that a graph, and a graph together with devices, must obey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, shown
from partitioner.workload.alternatives import AMOUNTS, Alternative, Alternatives
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.device_validation import LARGEST, MAX_COUNT, SMALLEST, is_amount, number_rule
from partitioner.workload.devices import Devices
from partitioner.workload.topological import topological

if TYPE_CHECKING:
    from partitioner.workload.graph import Graph

LONGEST_CYCLE = 12  # nodes that a message names


def graph_flaws(graph: Graph) -> list[Flaw]:
    """Return every rule that a graph breaks without regard to devices; empty if it is valid."""
    flaws = id_flaws(graph.ids) or layout_flaws(graph)
    if flaws:
        return flaws
    flaws = [Flaw("graph", "nodes", "", "there must be at least one")] if not graph.ids else []
    flaws += _repeated_flaws(graph)
    for kind, row in zip(graph.kinds, graph.time, strict=True):
        flaws += _number_flaws(row, f"time[{kind}]", lambda i: node_name(graph, i))
    flaws += _number_flaws(graph.size, "size", lambda i: node_name(graph, i))
    flaws += _number_flaws(graph.cache, "cache", lambda i: node_name(graph, i))
    flaws += _number_flaws(graph.cost, "cost", lambda i: edge_name(graph, i))
    for part, row in zip(MEMORY_PARTS, graph.parts, strict=True):
        flaws += _number_flaws(row, part, lambda i: node_name(graph, i))
    flaws += _edge_flaws(graph)
    of_ways = (graph.alternatives, graph.kinds, graph.ids, graph.edges, graph.color)
    return flaws or _cycle_flaws(graph) or alternative_flaws(*of_ways)


def device_flaws(graph: Graph, devices: Devices) -> list[Flaw]:
    """Return every rule that a graph breaks together with the devices that are to run it."""
    present = [kind for kind in devices.kinds if kind.count]
    unknown = [kind for kind in present if kind.row not in graph.kinds]
    if unknown:
        known = ", ".join(graph.kinds) or "none"
        rule = f'the graph has times only for {known}; "times" of the kind can name one of these'
        return [Flaw("devices", "kind", shown(kind.row), rule) for kind in unknown]
    rows = [graph.kinds.index(kind.row) for kind in present]
    allowed = graph.allowed[rows]
    return [
        Flaw(node_name(graph, i), "allowed", _kinds_of(graph, i), "no device that may run it is present")
        for i in np.flatnonzero(~allowed.any(axis=0)).tolist()
    ]


def _kinds_of(graph: Graph, i: int) -> str:
    return shown([kind for kind, may in zip(graph.kinds, graph.allowed[:, i], strict=True) if may])


def node_name(graph: Graph, i: int) -> str:
    """Return how messages name the node at position `i`."""
    return f"node {shown(graph.ids[i])}"


def edge_name(graph: Graph, i: int) -> str:
    """Return how messages name the edge at position `i`."""
    source, target = graph.edges[i]
    return f"edge {shown(graph.ids[source])} -> {shown(graph.ids[target])}"


def _number_flaws(values: NDArray[Any], name: str, where: Callable[[int], str]) -> list[Flaw]:
    sound = (values == 0) | ((values >= SMALLEST) & (values <= LARGEST))
    bad = [(i, float(values[i])) for i in np.flatnonzero(~sound).tolist()]
    return [Flaw(where(i), name, shown(value), number_rule(value)) for i, value in bad]


def id_flaws(ids: Sequence[object]) -> list[Flaw]:
    """Return a flaw for each id that is neither an integer nor a text."""
    if set(map(type, ids)) <= {int, str}:
        return []
    wrong = [i for i in ids if isinstance(i, bool) or not isinstance(i, int | str)]
    return [Flaw(f"node {shown(i)}", "id", shown(i), "must be an integer or text") for i in wrong]


def name_flaws(kinds: Sequence[str], allowed: Iterable[str], parts: Iterable[str]) -> list[Flaw]:
    """Return a flaw for each kind in `allowed` that has no times, and for each unknown part of the memory."""
    unknown = [kind for kind in allowed if kind not in kinds]
    rule = f"is not a part of the memory; the parts are {', '.join(MEMORY_PARTS)}"
    flaws = [Flaw("graph", "allowed", shown(kind), "must be a device kind of `time`") for kind in unknown]
    return flaws + [Flaw("graph", part, "", rule) for part in parts if part not in MEMORY_PARTS]


def _repeated_flaws(graph: Graph) -> list[Flaw]:
    """Return a flaw for each id that is given to several nodes, as a number or as a text."""
    mixed = len(set(map(type, graph.ids))) > 1
    if len(set(map(str, graph.ids) if mixed else graph.ids)) == len(graph.ids):
        return []
    times = Counter(map(str, graph.ids))
    repeated = dict.fromkeys(i for i in graph.ids if times[str(i)] > 1)
    return [Flaw(f"node {shown(i)}", "id", shown(i), "is given to more than one node") for i in repeated]


def layout_flaws(graph: Graph) -> list[Flaw]:
    """Return the arrays and lists of wrong shape or length, and those with indices out of range."""
    n, kinds, m = len(graph.ids), len(graph.kinds), len(np.atleast_1d(graph.edges))
    columns = ("size", "cache", "backward", "color", "layer")
    by_node: dict[str, tuple[int, ...]] = dict.fromkeys(columns, (n,))
    wanted = by_node | {"time": (kinds, n), "allowed": (kinds, n), "edges": (m, 2), "cost": (m,)}
    wanted |= {"parts": (len(MEMORY_PARTS), n)}
    flaws = [
        Flaw("graph", name, f"shape {getattr(graph, name).shape}", f"must have shape {shape}")
        for name, shape in wanted.items()
        if getattr(graph, name).shape != shape
    ]
    flaws += [
        Flaw("graph", name, f"{len(values)} values", f"must be {count} or none")
        for name, values, count in (
            ("names", graph.names, n),
            ("extras.nodes", graph.extras.nodes, n),
            ("extras.edges", graph.extras.edges, m),
        )
        if len(values) not in (0, count)
    ]
    flaws += [
        Flaw("graph", name, "", f"must be from {least} to {most - 1}")
        for name, least, most in (
            ("edges", 0, n),
            ("color", -1, len(graph.color_labels)),
            ("layer", -1, len(graph.layer_labels)),
        )
        if not ((getattr(graph, name) >= least) & (getattr(graph, name) < most)).all()
    ]
    rule = "must be distinct texts"
    texts = [kind for kind in graph.kinds if isinstance(kind, str)]
    return flaws + [Flaw("graph", "kinds", shown(graph.kinds), rule)] * (len(set(texts)) < kinds)


def _edge_flaws(graph: Graph) -> list[Flaw]:
    source, target = graph.edges[:, 0], graph.edges[:, 1]
    flaws = [
        Flaw(edge_name(graph, i), "", "", "an edge must join two different nodes")
        for i in np.flatnonzero(source == target).tolist()
    ]
    against = graph.backward[source] & ~graph.backward[target]
    rule = "an edge must not lead from a backward node to a forward node"
    return flaws + [Flaw(edge_name(graph, i), "", "", rule) for i in np.flatnonzero(against).tolist()]


def _cycle_flaws(graph: Graph) -> list[Flaw]:
    if len(topological(graph.edges, len(graph))) == len(graph):
        return []
    digraph: nx.DiGraph[int] = nx.DiGraph(graph.edges.tolist())
    cycle = [source for source, _ in nx.find_cycle(digraph)]
    few = len(cycle) <= LONGEST_CYCLE
    path = " -> ".join(shown(graph.ids[i]) for i in ([*cycle, cycle[0]] if few else cycle[:LONGEST_CYCLE]))
    rest = "" if few else f" -> ... ({len(cycle):,} nodes)"
    return [Flaw("edges", "", path + rest, "is a cycle; the graph must have none")]


def size_flaws(graph: Graph, devices: Devices) -> list[Flaw]:
    """Return a flaw for each colour class, or node without a colour, that fits on no device.

    Under any schedule each part of the memory counts at least once, of what the copies of a stage divide the
    smallest share; of the workspace the largest counts.
    """
    lone = graph.color < 0
    group = np.where(lone, len(graph.color_labels) + np.arange(len(graph)), graph.color)
    groups = len(graph.color_labels) + len(graph)
    *summed, workspace = graph.parts
    largest = np.zeros(groups)
    np.maximum.at(largest, group, workspace)
    size = np.bincount(group, graph.size + np.sum(summed, axis=0) - graph.divided, groups) + largest
    divided = np.bincount(group, graph.divided, groups)
    fits = np.zeros(groups, dtype=bool)
    fits[group[[graph.position[node] for node in graph.alternatives]]] = True  # some way may take less
    runs = np.zeros(groups, dtype=bool)
    for kind in devices.kinds:
        if kind.count:
            row = graph.allowed[graph.kinds.index(kind.row)]
            runs_here = np.bincount(group, ~row, groups) == 0
            runs |= runs_here
            fits |= runs_here & (size + divided / kind.count <= kind.memory_limit)
    used = np.unique(group)
    alike: dict[tuple[float, bool], list[int]] = {}
    for g in used[~fits[used]].tolist():
        alike.setdefault((float((size + divided)[g]), bool(runs[g])), []).append(g)
    return [_class_flaw(graph, found, *key) for key, found in alike.items()]


def _class_flaw(graph: Graph, groups: list[int], size: float, runs: bool) -> Flaw:
    """Return the flaw of the first of several colour classes (or nodes) of one size, with their number."""
    group, more = groups[0], f" and {len(groups) - 1:,} more of this size" if len(groups) > 1 else ""
    rule = "larger than the memory of every device that may run it"
    field = "memory" if graph.parts.any() else "size"
    labels = graph.color_labels
    if group >= len(labels):
        return Flaw(f"{node_name(graph, group - len(labels))}{more}", field, shown(size), rule)
    where = f"colour class {shown(labels[group])}{more}"
    if not runs:
        return Flaw(where, "", "", "no device that is present may run all its nodes")
    return Flaw(where, f"total {field}", shown(size), rule)


# The rules that the alternatives of a graph's nodes must obey.

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
