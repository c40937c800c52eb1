"""Reading of the files that :meth:`partitioner.Workload.save` writes.

``docs/workload_format.md`` has every field.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.formats.devices import read_devices
from partitioner.formats.msr import read_edges
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    flag,
    identifier,
    listing,
    mapping,
    number,
    text,
    texts,
    whole,
)
from partitioner.workload.alternatives import AMOUNTS, Alternative, Alternatives
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph, Ints, NodeId
from partitioner.workload.phases import phase_flaws, weigh_phases
from partitioner.workload.workload_json import NODE_FIELDS, TOP_FIELDS, VERSION

Columns = dict[str, list[Any]]


def read_saved(content: Any, source: str, phases: Mapping[str, float] | None = None) -> tuple[Graph, Devices]:
    """Return graph and devices in the content of a file, each checked, but not whether they fit together.

    With `phases`, times and costs are weighted sums over these phases; else they are those of the file.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    top = Record(content, "file", flaws)
    others = top.others(TOP_FIELDS)
    top.take("version", _version, VERSION)
    devices = read_devices(Record(top.take("devices", mapping, {}), "devices", flaws))
    kinds = top.take("kinds", texts, [])
    nodes, extra = _read_nodes(top.take("nodes", listing, []), kinds, flaws)
    edges, cost, edge_extra = read_edges(
        top.take("edges", listing, []), nodes["id"], _ids_known(nodes, flaws), flaws
    )
    tables = [top.take(name, _labels, None, False) for name in ("colorClasses", "layerClasses")]
    if flaws or devices is None:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    extras = Extras(others, extra, edge_extra)
    try:
        return _in_phases(_graph(kinds, nodes, edges, cost, tables, extras), phases), devices
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error


def _in_phases(graph: Graph, weights: Mapping[str, float] | None) -> Graph:
    """Return the graph of a file, whose phases are checked, with times by the weights if there are any."""
    flaws = phase_flaws(graph)
    if flaws:
        raise WorkloadError(flaws)
    return graph if weights is None else weigh_phases(graph, weights)


def _ids_known(nodes: Columns, flaws: Sequence[Flaw]) -> bool:
    """Whether the ids of all nodes could be read, and differ."""
    return not flaws and len(set(nodes["id"])) == len(nodes["id"])


def _version(value: Any) -> int:
    if whole(value) != VERSION:
        raise RuleBrokenError(f"must be {VERSION}, the only version that there is")
    return VERSION


def _labels(value: Any) -> list[NodeId]:
    return [identifier(label) for label in listing(value)]


def _read_nodes(
    records: Sequence[Any], kinds: Sequence[str], flaws: list[Flaw]
) -> tuple[Columns, list[dict[str, Any]]]:
    """Return the columns of the nodes by field, and their further fields; add every flaw to `flaws`."""
    columns: Columns = {name: [] for name in NODE_FIELDS}
    extra = []
    for place, data in enumerate(records):
        given = data.get("id") if isinstance(data, dict) else None
        where = f"node {shown(given)}" if isinstance(given, int | str) else f"nodes[{place}]"
        record = Record(data, where, flaws)
        node = record.take("id", identifier, f"nodes[{place}]")
        found = {
            "id": node,
            "name": record.take("name", text, str(node), False),
            "times": record.take("times", mapping, {}),
            "allowed": record.take("allowed", texts, kinds, False),
            "isBackwardNode": record.take("isBackwardNode", flag, False, False),
            "colorClass": record.take("colorClass", identifier, None, False),
            "layerId": record.take("layerId", identifier, None, False),
            **{name: record.take(name, number, 0.0, False) for name in ("size", "cache", *MEMORY_PARTS)},
            "alternatives": read_alternatives(record),
        }
        _check_kinds(record, found, kinds)
        for name, value in found.items():
            columns[name].append(value)
        extra.append(record.others(NODE_FIELDS))
    return columns, extra


def _check_kinds(record: Record, found: dict[str, Any], kinds: Sequence[str]) -> None:
    """Add a flaw unless the node has the time of every kind, and may run on some of these only."""
    if "times" in record.data and set(found["times"]) != set(kinds):
        record.note("times", shown(found["times"]), f"must have the times on {', '.join(kinds)}")
    times = Record(found["times"], f"{record.where}: times", record.flaws)
    found["times"] = {kind: times.take(kind, number, 0.0, False) for kind in kinds}
    unknown = [kind for kind in found["allowed"] if kind not in kinds]
    if unknown:
        record.note("allowed", shown(unknown[0]), f"must be one of the kinds, {', '.join(kinds)}")


def _graph(
    kinds: Sequence[str],
    nodes: Columns,
    edges: list[tuple[NodeId, NodeId]],
    cost: list[float],
    tables: Sequence[Sequence[Hashable] | None],
    extras: Extras,
) -> Graph:
    """Return the graph; classes are numbered as their tables say, else in the order of the nodes."""
    position = {node: i for i, node in enumerate(nodes["id"])}
    color, color_labels = _codes(nodes["colorClass"], tables[0], "colorClass", nodes["id"])
    layer, layer_labels = _codes(nodes["layerId"], tables[1], "layerId", nodes["id"])
    count = len(nodes["id"])
    return Graph(
        kinds=tuple(kinds),
        ids=tuple(nodes["id"]),
        time=np.array([[times[kind] for times in nodes["times"]] for kind in kinds]).reshape(-1, count),
        allowed=np.array([[kind in may for may in nodes["allowed"]] for kind in kinds]).reshape(-1, count),
        size=np.array(nodes["size"]),
        backward=np.array(nodes["isBackwardNode"], dtype=np.bool_),
        color=color,
        layer=layer,
        edges=np.array([(position[u], position[v]) for u, v in edges], dtype=np.int64).reshape(-1, 2),
        cost=np.array(cost),
        names=tuple(nodes["name"]),
        color_labels=color_labels,
        layer_labels=layer_labels,
        extras=extras,
        parts=np.array([nodes[part] for part in MEMORY_PARTS]),
        cache=np.array(nodes["cache"]),
        alternatives=Alternatives(by_id(nodes["alternatives"], nodes["id"])),
    )


def _codes(
    given: Sequence[Hashable], table: Sequence[Hashable] | None, field: str, ids: Sequence[NodeId]
) -> tuple[Ints, tuple[Hashable, ...]]:
    """Return the number of every node's class, -1 for none, and the labels of the classes."""
    labels = list(dict.fromkeys(label for label in given if label is not None)) if table is None else table
    code = {label: i for i, label in enumerate(labels)}
    flaws = [
        Flaw(f"node {shown(node)}", field, shown(label), "must be in the file's list of classes")
        for node, label in zip(ids, given, strict=True)
        if label is not None and label not in code
    ]
    if flaws:
        raise WorkloadError(flaws)
    return np.array([-1 if label is None else code[label] for label in given], dtype=np.int64), tuple(labels)


# Reading of the alternatives of nodes in workload files.

FIELDS = ("name", "degree", "times", *AMOUNTS, "inputs", "outputs")


def read_alternatives(node: Record) -> tuple[Alternative, ...]:
    """Return the alternatives of a node; inputs and outputs are by the text of an id."""
    given = node.take("alternatives", listing, [], required=False)
    return tuple(
        _read(Record(data, f"{node.where}: alternatives[{place}]", node.flaws))
        for place, data in enumerate(given)
    )


def _read(record: Record) -> Alternative:
    for field in record.others(FIELDS):
        record.note(field, "", f"is not a field of an alternative; these are {', '.join(FIELDS)}")
    name = record.take("name", text, "")
    if record.data.get("name") == "":
        record.note("name", shown(name), "must not be empty")
    return Alternative(
        name=name,
        times=_amounts(record, "times", required=True),
        degree=record.take("degree", whole, 1, False),
        inputs=_amounts(record, "inputs"),
        outputs=_amounts(record, "outputs"),
        **{part: record.take(part, number, 0.0, False) for part in AMOUNTS},
    )


def _amounts(record: Record, field: str, required: bool = False) -> dict[Any, float]:
    given = record.take(field, mapping, {}, required)
    entries = Record(given, f"{record.where}: {field}", record.flaws)
    return {name: entries.take(name, number, 0.0) for name in given}


def by_id(
    found: Sequence[Sequence[Alternative]], ids: Sequence[NodeId]
) -> dict[NodeId, tuple[Alternative, ...]]:
    """Return the alternatives by node, with the ids of nodes in place of their texts; other texts stay."""
    known = {str(node): node for node in ids}

    def resolved(times: Mapping[Any, float]) -> dict[Any, float]:
        return {known.get(text, text): time for text, time in times.items()}

    return {
        node: tuple(replace(way, inputs=resolved(way.inputs), outputs=resolved(way.outputs)) for way in ways)
        for node, ways in zip(ids, found, strict=True)
    }
