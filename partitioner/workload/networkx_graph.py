"""Conversion of graphs from and to networkx."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import networkx as nx

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.graph import Extras, Graph

EDGE_FIELDS = ("cost",)
ALIKE = 0.88  # similarity by difflib from which a name counts as misspelled: one letter in a short name
MOST_NAMES = 8
NODE_FIELDS = ("time", "size", "backward", "color", "layer", "allowed", "name", "cache", *MEMORY_PARTS)


def from_networkx(digraph: nx.DiGraph[Any]) -> Graph:
    """Return a graph made from a directed networkx graph.

    Parameters
    ----------
    digraph
        Node attributes: `time` (a mapping from device kind to time; required), `size` (0),
        `backward` (False), `color`, `layer` (None), `allowed` (the kinds that may run the node;
        all by default), `name`, the parts of memory, such as `parameters` (0), and `cache` (0). Edge
        attribute: `cost` (0). Other attributes are kept but not used, and the notes of a plan name them. An
        attribute whose name looks like a misspelling of one of these raises an error.

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
    nodes = dict(digraph.nodes(data=True))
    _check_attributes(nodes)
    _check_spelling(digraph)
    kinds = list(dict.fromkeys(kind for data in nodes.values() for kind in data["time"]))
    edges = list(digraph.edges(data=True))

    def attribute(name: str, default: Any) -> list[Any]:
        return [data.get(name, default) for data in nodes.values()]

    return Graph.from_arrays(
        {kind: [data["time"].get(kind, 0.0) for data in nodes.values()] for kind in kinds},
        [(source, target) for source, target, _ in edges],
        [data.get("cost", 0.0) for _, _, data in edges],
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
            edges=[_without(data, EDGE_FIELDS) for _, _, data in edges],
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
            rule = "must be a mapping from device kind to time"
            flaws.append(Flaw(f"node {shown(node)}", "time", shown(time), rule))
        elif not isinstance(allowed, list | tuple | set | frozenset) or not all(
            k in list(time) for k in allowed
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


def _check_spelling(digraph: nx.DiGraph[Any]) -> None:
    """Raise if an attribute is not known but is spelled almost like a known one."""
    flaws = []
    for where, entries, known in (
        ("nodes", digraph.nodes(data=True), NODE_FIELDS),
        ("edges", ((None, data) for *_, data in digraph.edges(data=True)), EDGE_FIELDS),
    ):
        names = dict.fromkeys(name for _, data in entries for name in data if name not in known)
        for name in names:
            near = get_close_matches(str(name).lower().replace("-", "_"), known, n=1, cutoff=ALIKE)
            rule = f"is not an attribute; did you mean `{near[0]}`?" if near else ""
            flaws += [Flaw(where, "attribute", shown(name), rule)] if near else []
    if flaws:
        raise WorkloadError(flaws)


def _may_run(data: Mapping[str, Any], kind: str) -> bool:
    return kind in data["time"] and kind in data.get("allowed", data["time"])


def _without(data: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}
