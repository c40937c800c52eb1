"""Placements from files: our plan JSON, and the split JSON of msr-fiddle/dnn-partitioning.

A split file holds `fpgas` and `cpus`, each a list of devices with a list of `nodes`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from partitioner.devices import Devices
from partitioner.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.verdict import DeviceLoad
from partitioner.files import read_json
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    identifier,
    listing,
    mapping,
    pair,
    text,
    texts,
    whole,
)
from partitioner.formats.replicas import read_replicas
from partitioner.formats.schedule import identifiers, read_schedule
from partitioner.graph import Graph, NodeId
from partitioner.plan import Plan, node_id

SPLIT_KINDS = {"fpgas": "accelerator", "cpus": "cpu"}
DEEPEST = 6
DEVICE_PAIRS = ("compute", "transfer_in", "transfer_out")


def load_placement(
    path: str | os.PathLike[str], graph: Graph, devices: Devices, complete: bool = True
) -> dict[NodeId, str]:
    """Read where a plan or split file puts the nodes of a graph.

    Parameters
    ----------
    path
        A plan as :meth:`partitioner.Plan.save` writes it, or a split file.
    graph, devices
        What the file speaks of.
    complete
        Place a node that the file leaves out with a node of its colour class, as is usual for the
        backward nodes of hand-made splits.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    source = os.fspath(path)
    flaws: list[Flaw] = []
    top = Record(read_json(path), "file", flaws)
    if not top.broken and not {"placement", "fpgas"} & set(top.data):
        top.others(("placement", "fpgas", "cpus"))
        top.note("", "", "is neither a plan (it has no placement) nor a split (it has no fpgas)")
        raise WorkloadError(flaws, source)
    placement = _placement(top) if "placement" in top.data else _split(top, flaws)
    by_text = {str(node): node for node in graph.ids}
    flaws += [
        Flaw(f"node {shown(node)}", "", "", "is not the id of a node of the workload")
        for node in placement
        if str(node) not in by_text
    ]
    kinds = ", ".join(kind.name for kind in devices.kinds)
    flaws += [
        Flaw("placement", "device", shown(name), f"must be a kind ({kinds}) and a number")
        for name in dict.fromkeys(placement.values())
        if devices.kind_of(name) is None
    ]
    if flaws:
        raise WorkloadError(flaws, source)
    found = {by_text[str(node)]: device for node, device in placement.items()}
    return _completed(graph, found) if complete else found


def load_subgraphs(path: str | os.PathLike[str], graph: Graph) -> dict[NodeId, int] | None:
    """Read the subgraphs of a plan for latency, by the ids of a graph's nodes; None if the file has none.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = _subgraphs(Record(read_json(path), "file", flaws))
    by_text = {str(node): node for node in graph.ids}
    flaws += [
        Flaw(f"subgraphs, node {shown(node)}", "", "", "is not the id of a node of the workload")
        for node in found or ()
        if str(node) not in by_text
    ]
    if flaws:
        raise WorkloadError(flaws, os.fspath(path))
    return None if found is None else {by_text[str(node)]: index for node, index in found.items()}


def load_execution_order(path: str | os.PathLike[str], graph: Graph) -> tuple[NodeId, ...] | None:
    """Read the order in which a plan's devices run their nodes, by a graph's ids; None if the file has none.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = _execution_order(Record(read_json(path), "file", flaws))
    by_text = {str(node): node for node in graph.ids}
    flaws += [
        Flaw("execution_order", "node", shown(node), "is not the id of a node of the workload")
        for node in found or ()
        if str(node) not in by_text
    ]
    if flaws:
        raise WorkloadError(flaws, os.fspath(path))
    return None if found is None else tuple(by_text[str(node)] for node in found)


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan as :meth:`partitioner.Plan.save` wrote it.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    top = Record(read_json(path), "file", flaws)
    plan = Plan(
        objective=top.take("objective", text, ""),
        split=top.take("split", text, ""),
        value=top.take("value", amount, 0.0),
        bound=top.take("bound", amount, 0.0),
        status=top.take("status", text, ""),
        stop_reason=top.take("stop_reason", text, ""),
        method=top.take("method", text, ""),
        backend=top.take("backend", text, ""),
        runtime_seconds=top.take("runtime_seconds", amount, 0.0),
        devices=tuple(
            _device(data, f"devices[{place}]", flaws)
            for place, data in enumerate(top.take("devices", filled, []))
        ),
        stages=tuple(top.take("stages", texts, [])),
        placement=_placement(top),
        workload_sha256=top.take("workload_sha256", text, ""),
        seed=top.take("seed", whole, 0),
        options=top.take("options", plain_mapping, {}),
        notes=tuple(top.take("notes", texts, [])),
        statistics=top.take("statistics", plain_mapping, {}),
        native_status=top.take("native_status", text, ""),
        subgraphs=_subgraphs(top),
        schedule=read_schedule(top),
        replicas=read_replicas(top),
        execution_order=_execution_order(top),
    )
    if flaws:
        raise WorkloadError(flaws, os.fspath(path))
    return plan


def filled(value: Any) -> list[Any]:
    """A JSON array that is not empty."""
    if not listing(value):
        raise RuleBrokenError("must not be empty")
    return listing(value)


def plain_mapping(value: Any) -> dict[str, Any]:
    """A JSON object without infinity and not too deep."""
    level: list[Any] = [mapping(value)]
    for _ in range(DEEPEST):
        if any(isinstance(item, float) and math.isinf(item) for item in level):
            break
        inner = [item.values() if isinstance(item, dict) else item for item in level if _holds(item)]
        level = [item for items in inner for item in items]
        if not level:
            return mapping(value)
    raise RuleBrokenError(f"must hold only finite numbers and be at most {DEEPEST} levels deep")


def _holds(item: object) -> bool:
    return isinstance(item, list | dict)


def _placement(top: Record) -> dict[NodeId, str]:
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("placement", mapping, {})
    entries = Record(given, "placement", top.flaws)
    return {node_id(node, text_ids): entries.take(node, text, "") for node in given}


def _subgraphs(top: Record) -> dict[NodeId, int] | None:
    if "subgraphs" not in top.data:
        return None
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("subgraphs", mapping, {})
    entries = Record(given, "subgraphs", top.flaws)
    return {node_id(node, text_ids): entries.take(node, whole, 0) for node in given}


def _execution_order(top: Record) -> tuple[NodeId, ...] | None:
    """The ids as they are written: JSON tells numbers from texts."""
    found = top.take("execution_order", identifiers, None, required=False)
    return None if found is None else tuple(found)


def _device(data: Any, where: str, flaws: list[Flaw]) -> DeviceLoad:
    record = Record(data, where, flaws)
    limit = None if record.data.get("memory_limit", 0) is None else record.take("memory_limit", amount, 0.0)
    compute, into, out = (record.take(name, pair, (0.0, 0.0)) for name in DEVICE_PAIRS)
    return DeviceLoad(
        name=record.take("name", text, ""),
        kind=record.take("kind", text, ""),
        load=record.take("load", amount, 0.0),
        compute=compute,
        transfer_in=into,
        transfer_out=out,
        memory=record.take("memory", amount, 0.0),
        memory_limit=limit,
        nodes=record.take("nodes", whole, 0),
        sync=record.take("sync", amount, 0.0, required=False),
        replica_of=record.take("replica_of", text, None, required=False),
    )


def _split(top: Record, flaws: list[Flaw]) -> dict[NodeId, str]:
    placement: dict[NodeId, str] = {}
    seen: set[str] = set()
    for field, kind in SPLIT_KINDS.items():
        for place, data in enumerate(top.take(field, listing, [])):
            record = Record(data, f"{field}[{place}]", flaws)
            for item in record.take("nodes", listing, []):
                entry = Record({"nodes": item}, record.where, flaws)
                node = entry.take("nodes", identifier, None)
                if str(node) in seen:
                    record.note("nodes", shown(node), "is placed twice")
                elif node is not None:
                    placement[node] = f"{kind}{place}"
                    seen.add(str(node))
    return placement


def _completed(graph: Graph, placement: Mapping[NodeId, str]) -> dict[NodeId, str]:
    home: dict[int, str] = {}
    for node, color in zip(graph.ids, graph.color.tolist(), strict=True):
        if color >= 0 and node in placement:
            home.setdefault(color, placement[node])
    found = dict(placement)
    for node, color in zip(graph.ids, graph.color.tolist(), strict=True):
        if node not in found and color in home:
            found[node] = home[color]
    return found
