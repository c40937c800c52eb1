"""The native workload format: the JSON of msr-fiddle/dnn-partitioning.

The file holds `maxSizePerFPGA` (bytes), `maxFPGAs`, `maxCPUs`, `nodes` and `edges`. A node has `id`,
`supportedOnFpga`, `cpuLatency`, `fpgaLatency`, `isBackwardNode` and may have `name`, `colorClass`,
`size` (0 if missing) and `layerId`; an edge has `sourceId`, `destId` and `cost`. "FPGA" stands for any
accelerator. This package adds three things to the format: a node may have `times`, an object with its time on
further kinds of device (of these it runs only on those that `times` names), the parts of its memory,
`parameters`, `gradients`, `optimizer`, `activations` and `workspace`, and its `cache`. Fields of other names
are kept.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import is_folder, path_name
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    flag,
    identifier,
    listing,
    mapping,
    number,
    text,
    whole,
)
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.workload import Workload

TOP_FIELDS = ("maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges")
EDGE_FIELDS = ("sourceId", "destId", "cost")
FILE_NAME = {"time[accelerator]": "fpgaLatency", "time[cpu]": "cpuLatency"}
DEVICE_FIELD = {
    ("device kind accelerator", "count"): "maxFPGAs",
    ("device kind accelerator", "memory"): "maxSizePerFPGA",
    ("device kind cpu", "count"): "maxCPUs",
    ("devices", "count"): "maxFPGAs + maxCPUs",
}


def read_native(content: Any, source: str) -> tuple[Graph, Devices]:
    """Return graph and devices in the content of a file, each checked, but not whether they fit together.

    Parameters
    ----------
    content
        The parsed JSON. Times are in one unit of the user's choice (milliseconds in the published
        workloads), sizes in bytes.
    source
        The file's name, for messages.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    top = Record(content, "file", flaws)
    if top.broken:
        raise WorkloadError(flaws, source)
    top_others = top.others(TOP_FIELDS)
    counts = top.take("maxFPGAs", whole, 1), top.take("maxCPUs", whole, 0)
    memory = top.take("maxSizePerFPGA", number, 0.0)
    nodes = read_nodes(top.take("nodes", listing, []), flaws)
    ids_known = not any(f.field in ("nodes", "id") or f.where.startswith("nodes[") for f in flaws)
    edges, cost, edge_others = read_edges(top.take("edges", listing, []), nodes.ids, ids_known, flaws)
    extras = Extras(top_others, nodes.others, edge_others)
    graph = devices = None
    try:
        devices = Devices.accelerated(counts[0], memory=memory, cpus=counts[1])
    except WorkloadError as error:
        flaws += [_with_file_names(flaw) for flaw in error.flaws]
    try:
        graph = _graph(nodes, edges, cost, extras) if nodes.ids or ids_known else None
    except WorkloadError as error:
        flaws += [_with_file_names(flaw) for flaw in error.flaws]
    if graph is None or devices is None or flaws:
        raise WorkloadError(list(dict.fromkeys(flaws)), source)
    return graph, devices


def workload_of(path: str | os.PathLike[str], graph: Graph, devices: Devices) -> Workload:
    """Return the workload of a file's graph and of devices, which may differ from the file's.

    Raises
    ------
    WorkloadError
        If the devices cannot run the graph; the message uses the names of fields in the file.
    """
    try:
        return Workload(graph, devices, Path(path).name if is_folder(path) else Path(path).stem)
    except WorkloadError as error:
        flaws = [_with_file_names(flaw) for flaw in error.flaws]
        raise type(error)(list(dict.fromkeys(flaws)), path_name(path)) from error


def read_edges(
    records: Sequence[Any], ids: Sequence[NodeId], ids_known: bool, flaws: list[Flaw]
) -> tuple[list[tuple[NodeId, NodeId]], list[float], list[dict[str, Any]]]:
    """Return ends, cost and further fields of every edge; add every flaw to `flaws`."""
    known = set(ids)
    edges, costs, others = [], [], []
    for place, data in enumerate(records):
        record = Record(data, _edge_place(place, data), flaws)
        source = record.take("sourceId", identifier, None)
        target = record.take("destId", identifier, None)
        cost = record.take("cost", number, 0.0)
        rest = record.others(EDGE_FIELDS)
        unknown = [(name, end) for name, end in (("sourceId", source), ("destId", target))
                   if end is not None and end not in known]  # fmt: skip
        for name, end in unknown if ids_known else ():
            record.note(name, shown(end), "is not the id of a node")
        if source is not None and target is not None and not unknown:
            edges.append((source, target))
            costs.append(cost)
            others.append(rest)
    return edges, costs, others


def _edge_place(place: int, data: Any) -> str:
    if isinstance(data, dict) and "sourceId" in data and "destId" in data:
        return f"edge {shown(data['sourceId'])} -> {shown(data['destId'])}"
    return f"edges[{place}]"


def _graph(nodes: Nodes, edges: list[tuple[NodeId, NodeId]], cost: list[float], extras: Extras) -> Graph:
    further = list(dict.fromkeys(kind for times in nodes.times for kind in times))
    parts = zip(*nodes.parts, strict=True) if nodes.parts else [()] * len(MEMORY_PARTS)
    return Graph.from_arrays(
        {"accelerator": nodes.accelerator, "cpu": nodes.cpu}
        | {kind: [times.get(kind, 0.0) for times in nodes.times] for kind in further},
        edges,
        cost,
        ids=nodes.ids,
        size=nodes.size,
        backward=nodes.backward,
        allowed={"accelerator": nodes.supported}
        | {kind: [kind in times for times in nodes.times] for kind in further},
        color=nodes.color,
        layer=nodes.layer,
        names=nodes.names,
        extras=extras,
        cache=nodes.cache or 0.0,
        **dict(zip(MEMORY_PARTS, parts, strict=True)),
    )


def _with_file_names(flaw: Flaw) -> Flaw:
    """Return the flaw with the names of fields in the file."""
    if flaw.where.startswith(f"node '{NAMELESS}["):
        place = flaw.where.removeprefix(f"node '{NAMELESS}").removesuffix("'")
        flaw = replace(flaw, where=f"nodes{place}")
    if flaw.field == "allowed":
        return replace(flaw, field="supportedOnFpga", value="false")
    if (flaw.where, flaw.field) in DEVICE_FIELD:
        return replace(flaw, where="file", field=DEVICE_FIELD[flaw.where, flaw.field])
    return replace(flaw, field=FILE_NAME.get(flaw.field, flaw.field))


# The node table of the native workload format.

NODE_FIELDS = ("id", "name", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode")
NAMELESS = "nodes without an id"
OPTIONAL_NODE_FIELDS = ("colorClass", "layerId", "size", "times", "cache", *MEMORY_PARTS)


@dataclass
class Nodes:
    """The columns of the node table, with an entry for each node."""

    ids: list[NodeId] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    accelerator: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    supported: list[bool] = field(default_factory=list)
    size: list[float] = field(default_factory=list)
    backward: list[bool] = field(default_factory=list)
    color: list[int | str | None] = field(default_factory=list)
    layer: list[int | str | None] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    times: list[dict[str, float]] = field(default_factory=list)
    parts: list[list[float]] = field(default_factory=list)
    cache: list[float] = field(default_factory=list)


def read_nodes(records: Sequence[Any], flaws: list[Flaw]) -> Nodes:
    """Return the columns of the node table; add every flaw to `flaws`."""
    nodes = Nodes()
    for place, data in enumerate(records):
        given = data.get("id") if isinstance(data, dict) else None
        where = f"node {shown(given)}" if isinstance(given, int | str) else f"nodes[{place}]"
        record = Record(data, where, flaws)
        node = record.take("id", identifier, f"{NAMELESS}[{place}]")
        nodes.ids.append(node)
        nodes.names.append(record.take("name", text, str(node), required=False))
        nodes.supported.append(record.take("supportedOnFpga", flag, True))
        nodes.cpu.append(record.take("cpuLatency", number, 0.0))
        nodes.accelerator.append(record.take("fpgaLatency", number, 0.0))
        nodes.backward.append(record.take("isBackwardNode", flag, False))
        nodes.size.append(record.take("size", number, 0.0, required=False))
        nodes.color.append(record.take("colorClass", identifier, None, required=False))
        nodes.layer.append(record.take("layerId", identifier, None, required=False))
        nodes.times.append(record.take("times", _times, {}, required=False))
        nodes.parts.append([record.take(part, number, 0.0, required=False) for part in MEMORY_PARTS])
        nodes.cache.append(record.take("cache", number, 0.0, required=False))
        nodes.others.append(record.others((*NODE_FIELDS, *OPTIONAL_NODE_FIELDS)))
    return nodes


def _times(value: Any) -> dict[str, float]:
    """Return the times on kinds other than accelerators and CPUs."""
    times = {text(kind): number(time) for kind, time in mapping(value).items()}
    if not times.keys().isdisjoint(("accelerator", "cpu")):
        raise RuleBrokenError("must not repeat accelerator and cpu: these are fpgaLatency and cpuLatency")
    return times
