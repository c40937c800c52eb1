"""A workload as JSON: the content of the file that :meth:`partitioner.Workload.save` writes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from partitioner.base.errors import PartitionerError, plain_name, shown
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, Ints

VERSION = 1
TOP_FIELDS = ("version", "devices", "kinds", "colorClasses", "layerClasses", "nodes", "edges")
NODE_FIELDS = (
    *("id", "name", "times", "allowed", "isBackwardNode", "colorClass", "layerId", "size", "cache"),
    *MEMORY_PARTS,
    "alternatives",
)
EDGE_FIELDS = ("sourceId", "destId", "cost")
LABEL_RULE = "must be an integer of 64 bits or a text without lone surrogates"


def workload_text(graph: Graph, devices: Devices) -> str:
    """Return the text of a workload file, with a line for each node and edge.

    Raises
    ------
    PartitionerError
        If an id, a label or a further field cannot be written so that it is read back.
    """
    labels = zip(("colorClasses", "layerClasses"), _class_tables(graph), strict=True)
    top = {"version": VERSION, "devices": devices.as_dict(), "kinds": list(graph.kinds)}
    top |= {name: table for name, table in labels if table is not None}
    top |= _further(graph.extras.top, TOP_FIELDS, "the workload")
    listed = {"nodes": _nodes(graph), "edges": _edges(graph)}
    try:
        entries = [f"{json.dumps(name)}: {_line(value)}" for name, value in top.items()]
        entries += [f'"{name}": [\n{_lines(records)}\n]' for name, records in listed.items()]
    except (TypeError, ValueError, RecursionError) as error:
        words = f"the workload cannot be written: a further field is not JSON: {error}"
        raise PartitionerError(words) from error
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _lines(records: Iterable[Mapping[str, Any]]) -> str:
    return ",\n".join(map(_line, records))


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _class_tables(graph: Graph) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the labels of colour classes and layers, each None if the nodes give them in order."""
    color, layer = (
        None if _in_order(codes, labels) else _distinct(labels, where)
        for codes, labels, where in (
            (graph.color, graph.color_labels, "a colour class"),
            (graph.layer, graph.layer_labels, "a layer"),
        )
    )
    return color, layer


def _distinct(labels: Sequence[Hashable], where: str) -> list[int | str]:
    """Return the labels of classes, which must differ to be told apart in a file."""
    found = [_label(label, where) for label in labels]
    for label in found:
        if found.count(label) > 1:
            raise PartitionerError(
                f"{where}: cannot be written: label = {shown(label)}: is that of two classes"
            )
    return found


def _in_order(codes: Ints, labels: Sequence[Hashable]) -> bool:
    """Whether classes are numbered in the order in which the nodes first have them, and each has a node."""
    met = list(dict.fromkeys(code for code in codes.tolist() if code >= 0))
    return met == list(range(len(labels))) and len(set(labels)) == len(labels)


def _nodes(graph: Graph) -> list[dict[str, Any]]:
    return [_node(graph, i) for i in range(len(graph))]


def _node(graph: Graph, i: int) -> dict[str, Any]:
    """Return the fields of a node; those that have their default are left out."""
    where = f"node {shown(graph.ids[i])}"
    kinds = dict(zip(graph.kinds, graph.allowed[:, i].tolist(), strict=True))
    color, layer = int(graph.color[i]), int(graph.layer[i])
    parts = {part: float(row[i]) for part, row in zip(MEMORY_PARTS, graph.parts, strict=True) if row[i]}
    found: dict[str, Any] = {"id": _label(graph.ids[i], where)}
    if graph.names[i] != str(graph.ids[i]):
        found["name"] = _label(graph.names[i], where)
    found["times"] = dict(zip(graph.kinds, graph.time[:, i].tolist(), strict=True))
    found |= {} if all(kinds.values()) else {"allowed": [kind for kind, may in kinds.items() if may]}
    found |= {"isBackwardNode": True} if graph.backward[i] else {}
    found |= {"colorClass": _label(graph.color_labels[color], where)} if color >= 0 else {}
    found |= {"layerId": _label(graph.layer_labels[layer], where)} if layer >= 0 else {}
    found |= {"size": float(graph.size[i])} if graph.size[i] else {}
    found |= {"cache": float(graph.cache[i])} if graph.cache[i] else {}
    extra = graph.extras.nodes[i] if graph.extras.nodes else {}
    found |= parts
    if graph.ids[i] in graph.alternatives:
        found["alternatives"] = [way.as_dict() for way in graph.alternatives[graph.ids[i]]]
    return found | _further(extra, NODE_FIELDS, where)


def _edges(graph: Graph) -> list[dict[str, Any]]:
    found = []
    for i, (source, target) in enumerate(graph.edges.tolist()):
        ends = {"sourceId": graph.ids[source], "destId": graph.ids[target]}
        where = f"edge {shown(graph.ids[source])} -> {shown(graph.ids[target])}"
        extra = graph.extras.edges[i] if graph.extras.edges else {}
        found.append({**ends, "cost": float(graph.cost[i]), **_further(extra, EDGE_FIELDS, where)})
    return found


def _further(extra: Mapping[str, Any], known: Sequence[str], where: str) -> dict[str, Any]:
    """Return the further fields, none of which may be spelled like a field of the format."""
    taken = {plain_name(name) for name in known}
    for name in extra:
        if not isinstance(name, str) or plain_name(name) in taken:
            rule = f"must be a text that is not spelled like {', '.join(known)}"
            raise PartitionerError(f"{where}: cannot be written: further field = {shown(name)}: {rule}")
    return dict(extra)


def _label(label: Hashable, where: str) -> int | str:
    """Return an id, a title or a label of a class.

    Raises
    ------
    PartitionerError
        If it would not be read back from JSON as it is.
    """
    if isinstance(label, str) and label == label.encode("utf-8", "replace").decode():
        return str(label)
    if isinstance(label, int) and not isinstance(label, bool) and abs(label) < 2**63:
        return int(label)
    raise PartitionerError(f"{where}: cannot be written: label = {shown(label)}: {LABEL_RULE}")
