"""The node table of the native workload format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from partitioner.base.errors import Flaw, shown
from partitioner.formats.record import Record, RuleBrokenError, flag, identifier, mapping, number, text
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.graph import NodeId

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
