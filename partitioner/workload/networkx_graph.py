"""Conversion of graphs from and to networkx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any

import networkx as nx

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.device_validation import LARGEST, is_amount
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Extras, Graph
from partitioner.workload.layer_graph import time_per_byte

EDGE_FIELDS = ("cost",)
ALIKE = 0.88  # similarity by difflib from which a name counts as misspelled: one letter in a short name
MOST_NAMES = 8
BYTES = "bytes"  # of an edge, read with a bandwidth
MEANT_BY_NODES = dict.fromkeys(("memory", "mem", "memory_bytes", "bytes", "nbytes"), "size")
MEANT_BY_EDGES = dict.fromkeys((BYTES, "nbytes", "size", "weight", "time", "latency", "volume"), "cost")
NODE_FIELDS = ("time", "size", "backward", "color", "layer", "allowed", "name", "cache", *MEMORY_PARTS)


def as_graph(graph: Graph | nx.DiGraph[Any], devices: Devices | None) -> Graph:
    """Return a graph as it is, or made from networkx for the kinds of the devices, where they are known."""
    if isinstance(graph, Graph):
        return graph
    kinds = devices.kinds if isinstance(devices, Devices) else ()
    return from_networkx(graph, kinds=[kind.row for kind in kinds])


def from_networkx(
    digraph: nx.DiGraph[Any], *, bandwidth: float | None = None, kinds: Sequence[str] = ()
) -> Graph:
    """Return a graph made from a directed networkx graph.

    Parameters
    ----------
    digraph
        Node attributes: `time` (a mapping from device kind to time, or a number for all kinds;
        required), `size` (0),
        `backward` (False), `color`, `layer` (None), `allowed` (the kinds that may run the node;
        all by default), `name`, the parts of memory, such as `parameters` (0), and `cache` (0). Edge
        attribute: `cost` (0), or `bytes` with a bandwidth. Other attributes are kept but not used, and the
        notes of a plan name them. An attribute whose name looks like a misspelling of one of these raises
        an error, and so does one that stands in its place, such as `memory` where there is no `size`.
    bandwidth
        Bytes per second, by which the `bytes` of an edge become its cost in milliseconds.
    kinds
        Kinds of devices that a `time` without kinds applies to, besides those that other nodes name.

    Returns
    -------
    Graph
        The graph, with the kinds in order of appearance.

    Raises
    ------
    WorkloadError
        Naming node, attribute and rule.

    Examples
    --------
    >>> digraph = nx.DiGraph([("a", "b")])
    >>> digraph.add_nodes_from("ab", time={"gpu": 1.5})
    >>> from_networkx(digraph).ids
    ('a', 'b')
    """
    if not isinstance(digraph, nx.DiGraph):
        rule = "must be a partitioner.Graph or a networkx.DiGraph"
        raise WorkloadError([Flaw("graph", "", type(digraph).__name__, rule)])
    edge_fields = EDGE_FIELDS if bandwidth is None else (*EDGE_FIELDS, BYTES)
    _check_spelling(digraph, edge_fields)
    nodes = _with_kinds(dict(digraph.nodes(data=True)), kinds)
    _check_attributes(nodes)
    kinds = list(dict.fromkeys(kind for data in nodes.values() for kind in data["time"]))
    edges = list(digraph.edges(data=True))
    costs = [data.get("cost", 0.0) for _, _, data in edges] if bandwidth is None else _costs(edges, bandwidth)

    def attribute(name: str, default: Any) -> list[Any]:
        return [data.get(name, default) for data in nodes.values()]

    return Graph.from_arrays(
        {kind: [data["time"].get(kind, 0.0) for data in nodes.values()] for kind in kinds},
        [(source, target) for source, target, _ in edges],
        costs,
        ids=list(nodes),
        size=attribute("size", 0.0),
        backward=attribute("backward", False),
        allowed={kind: [_may_run(data, kind) for data in nodes.values()] for kind in kinds},
        color=attribute("color", None),
        layer=attribute("layer", None),
        names=[str(data.get("name", node)) for node, data in nodes.items()],
        **{part: attribute(part, 0.0) for part in (*MEMORY_PARTS, "cache")},
        extras=Extras(
            nodes=[_without(data, NODE_FIELDS) for data in nodes.values()],
            edges=[_without(data, edge_fields) for _, _, data in edges],
        ),
    )


def to_networkx(graph: Graph) -> nx.DiGraph[Any]:
    """Return the graph as a networkx graph, with the attributes that :func:`from_networkx` reads.

    Raises
    ------
    WorkloadError
        If two edges join the same pair of nodes, which a DiGraph cannot hold.
    """
    require_type("graph", graph, Graph)
    digraph: nx.DiGraph[Any] = nx.DiGraph()
    for i, node in enumerate(graph.ids):
        digraph.add_node(node)
        digraph.nodes[node].update(_node_attributes(graph, i))
    for i, (source, target) in enumerate(graph.edges.tolist()):
        extra = graph.extras.edges[i] if graph.extras.edges else {}
        pair = graph.ids[source], graph.ids[target]
        if digraph.has_edge(*pair):
            where = f"edge {shown(pair[0])} -> {shown(pair[1])}"
            raise WorkloadError([Flaw(where, "", "", "a networkx.DiGraph holds it only once")])
        digraph.add_edge(*pair)
        digraph.edges[pair].update({**extra, "cost": float(graph.cost[i])})
    return digraph


def _node_attributes(graph: Graph, i: int) -> dict[str, Any]:
    extra = graph.extras.nodes[i] if graph.extras.nodes else {}
    color, layer = graph.color[i], graph.layer[i]
    return {
        **extra,
        "time": {kind: float(graph.time[k, i]) for k, kind in enumerate(graph.kinds)},
        "allowed": [kind for k, kind in enumerate(graph.kinds) if graph.allowed[k, i]],
        "size": float(graph.size[i]),
        "backward": bool(graph.backward[i]),
        "name": graph.names[i],
        **{part: float(row[i]) for part, row in zip(MEMORY_PARTS, graph.parts, strict=True) if row.any()},
        **({"cache": float(graph.cache[i])} if graph.cache.any() else {}),
        **({"color": graph.color_labels[color]} if color >= 0 else {}),
        **({"layer": graph.layer_labels[layer]} if layer >= 0 else {}),
    }


def _check_attributes(nodes: Mapping[Any, Mapping[str, Any]]) -> None:
    flaws = []
    for node, data in nodes.items():
        time, allowed = data.get("time"), data.get("allowed", ())
        if not isinstance(time, Mapping):
            rule = "must be a mapping from device kind to time, or a number"
            flaws.append(Flaw(f"node {shown(node)}", "time", shown(time), rule))
        elif not isinstance(allowed, list | tuple | set | frozenset) or not all(
            isinstance(k, str) and k in time for k in allowed
        ):
            rule = "must be a list of device kinds that `time` has"
            flaws.append(Flaw(f"node {shown(node)}", "allowed", shown(allowed), rule))
    if flaws:
        raise WorkloadError(flaws)


def unread_note(graph: Graph) -> tuple[str, ...]:
    """Return a note that names the attributes which :func:`from_networkx` has kept and no solver reads."""
    names = dict.fromkeys(str(name) for entry in (*graph.extras.nodes, *graph.extras.edges) for name in entry)
    if not names:
        return ()
    shown_names = ", ".join(list(names)[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return (f"attributes of the networkx graph that are not used: {shown_names}",)


def _check_spelling(digraph: nx.DiGraph[Any], edge_fields: tuple[str, ...]) -> None:
    """Raise if an attribute is not known but is spelled almost like a known one, or stands in its place."""
    edges = [(f"edge {shown(a)} -> {shown(b)}", data) for a, b, data in digraph.edges(data=True)]
    nodes = [(f"node {shown(node)}", data) for node, data in digraph.nodes(data=True)]
    flaws = _misspelled("nodes", nodes, NODE_FIELDS) + _misspelled("edges", edges, edge_fields)
    flaws += _in_place(nodes, MEANT_BY_NODES, NODE_FIELDS) + _in_place(edges, MEANT_BY_EDGES, edge_fields)
    if flaws:
        raise WorkloadError(flaws)


def _misspelled(
    where: str, entries: Sequence[tuple[str, Mapping[str, Any]]], known: tuple[str, ...]
) -> list[Flaw]:
    flaws = []
    for name in dict.fromkeys(name for _, data in entries for name in data if name not in known):
        near = get_close_matches(str(name).lower().replace("-", "_"), known, n=1, cutoff=ALIKE)
        rule = f"is not an attribute; did you mean `{near[0]}`?" if near else ""
        flaws += [Flaw(where, "attribute", shown(name), rule)] if near else []
    return flaws


def _in_place(
    entries: Sequence[tuple[str, Mapping[str, Any]]], meant: Mapping[str, str], known: tuple[str, ...]
) -> list[Flaw]:
    """Return the attributes that stand in place of a known one, which their node or edge does not have."""
    return [
        Flaw(where, str(name), shown(value), _rule_in_place(str(name), meant[name]))
        for where, data in entries
        for name, value in data.items()
        if name in meant and name not in known and meant[name] not in data
    ]


def _rule_in_place(name: str, wanted: str) -> str:
    if wanted == "cost" and name == BYTES:
        way = "`cost` (a time), or `from_networkx(graph, bandwidth=...)`, which makes times of bytes"
        return f"is not read without a bandwidth; give {way}"
    unit = "a time" if wanted == "cost" else "in bytes"
    return f"is not an attribute; give `{wanted}` ({unit})"


def _with_kinds(nodes: dict[Any, dict[str, Any]], kinds: Sequence[str]) -> dict[Any, dict[str, Any]]:
    """Return the nodes, where a time without kinds is given for each of the kinds."""
    plain = {node for node, data in nodes.items() if _is_number(data.get("time"))}
    if not plain:
        return nodes
    times = [data.get("time") for data in nodes.values()]
    named = list(dict.fromkeys([kind for time in times if isinstance(time, Mapping) for kind in time]))
    named += [kind for kind in dict.fromkeys(kinds) if kind not in named]
    if not named:
        rule = "is a number, but no kind of device is named; give a mapping from kind to time, or `kinds`"
        raise WorkloadError(
            [Flaw(f"node {shown(node)}", "time", shown(nodes[node]["time"]), rule) for node in plain]
        )
    return {
        node: {**data, "time": dict.fromkeys(named, data["time"])} if node in plain else data
        for node, data in nodes.items()
    }


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _costs(edges: Sequence[tuple[Any, Any, Mapping[str, Any]]], bandwidth: float) -> list[Any]:
    """Return the costs of the edges, of `bytes` their time at the bandwidth."""
    factor = time_per_byte(bandwidth)
    flaws = []
    for source, target, data in edges:
        amount, where = data.get(BYTES, 0.0), f"edge {shown(source)} -> {shown(target)}"
        if BYTES in data and "cost" in data:
            flaws.append(Flaw(where, BYTES, shown(amount), "must not be given beside `cost`"))
        elif not (_is_number(amount) and is_amount(float(amount))):
            flaws.append(Flaw(where, BYTES, shown(amount), f"must be a number from 0 to {LARGEST:g}"))
    if flaws:
        raise WorkloadError(flaws)
    return [data["cost"] if "cost" in data else data.get(BYTES, 0.0) * factor for _, _, data in edges]


def _may_run(data: Mapping[str, Any], kind: str) -> bool:
    return kind in data["time"] and kind in data.get("allowed", data["time"])


def _without(data: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}
