"""The fields of a plan file: how each is read, for a plan and for the record of a solution alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from partitioner.base.errors import Flaw, shown
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.formats.devices import read_devices as read_devices_record
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    filled,
    flag,
    identifier,
    listing,
    mapping,
    pair,
    text,
    texts,
    whole,
)
from partitioner.results.by_stage import StageLoad
from partitioner.results.plan import node_id
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId


def known(graph: Graph, nodes: Iterable[NodeId], where: str, flaws: list[Flaw]) -> dict[str, NodeId]:
    """Return the graph's ids by their texts; add a flaw for each of `nodes` that the graph does not have."""
    by_text = {str(node): node for node in graph.ids}
    flaws += [
        Flaw(f"{where}node {shown(node)}", "", "", "is not the id of a node of the workload")
        for node in nodes
        if str(node) not in by_text
    ]
    return by_text


def read_devices(top: Record) -> dict[NodeId, str]:
    """Return the device of every node that a plan places."""
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("placement", mapping, {})
    entries = Record(given, "placement", top.flaws)
    return {node_id(node, text_ids): entries.take(node, text, "") for node in given}


def read_numbers(top: Record, name: str) -> dict[NodeId, int] | None:
    """Return the number that a field has for every node; None if the plan does not have the field."""
    if name not in top.data:
        return None
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take(name, mapping, {})
    entries = Record(given, name, top.flaws)
    return {node_id(node, text_ids): entries.take(node, whole, 0) for node in given}


def read_chosen(top: Record) -> dict[NodeId, str]:
    """Return the name of the alternative of each node that has one."""
    text_ids = frozenset(top.take("text_ids", texts, [], required=False))
    given = top.take("alternatives", mapping, {}, required=False)
    entries = Record(given, "alternatives", top.flaws)
    return {node_id(node, text_ids): entries.take(node, text, "") for node in given}


def read_execution_order(top: Record) -> tuple[NodeId, ...] | None:
    """Return the ids in the order of execution, numbers and texts as they are written; None without one."""
    found = top.take("execution_order", identifiers, None, required=False)
    return None if found is None else tuple(found)


# Reading of the replicas of stages from a plan file.


def read_replicas(top: Record) -> dict[str, tuple[str, ...]]:
    """Return the replicas of a plan: the further devices of each stage; empty if it has none."""
    given = top.take("replicas", mapping, {}, required=False)
    entries = Record(given, "replicas", top.flaws)
    return {name: tuple(entries.take(name, texts, [])) for name in given}


DEEPEST = 6
DEVICE_PAIRS = ("compute", "transfer_in", "transfer_out")


def read_fields(top: Record, names: Iterable[str], required: bool) -> dict[str, Any]:
    """Return fields of a plan file by name, read in the order of the names.

    With `required`, a field that is missing is a flaw.
    """
    return {name: BUILT[name](top) if name in BUILT else _taken(top, name, required) for name in names}


def _taken(top: Record, name: str, required: bool) -> Any:
    convert, default = PLAIN[name]
    return top.take(name, convert, copy(default), required)


def read_hardware(top: Record) -> Devices | None:
    """Return the devices that the plan is made for; None if the file does not contain them."""
    data = top.take("hardware", mapping, None, required=False)
    return None if data is None else read_devices_record(Record(data, "hardware", top.flaws))


def plain_mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, which must not contain infinity or be nested deeper than `DEEPEST`."""
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


def read_loads(top: Record) -> tuple[DeviceLoad, ...]:
    """Return what the plan says of every device."""
    found = top.take("devices", filled, [])
    return tuple(_load(data, f"devices[{place}]", top.flaws) for place, data in enumerate(found))


def _load(data: Any, where: str, flaws: list[Flaw]) -> DeviceLoad:
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
        cache=record.take("cache", amount, 0.0, required=False),
        capacity=record.take("capacity", whole, None, required=False),
    )


def read_stages(top: Record) -> tuple[StageLoad, ...]:
    """Return what the plan says of every stage; nothing if the file does not contain it."""
    found = top.take("by_stage", listing, [], required=False)
    stages = tuple(_stage(data, f"by_stage[{place}]", top.flaws) for place, data in enumerate(found))
    for name in ("parameters", "bubble"):
        if len({getattr(stage, name) is None for stage in stages}) > 1:
            top.note("by_stage", "", f"{name} must be null for all stages or for none")
    return stages


def _stage(data: Any, where: str, flaws: list[Flaw]) -> StageLoad:
    record = Record(data, where, flaws)
    known = {name: record.data.get(name) is not None for name in ("parameters", "bubble")}
    return StageLoad(
        devices=record.take("devices", _tuple_of_texts, ()),
        layers=record.take("layers", _tuple_of_texts, ()),
        parameters=record.take("parameters", amount, None) if known["parameters"] else None,
        memory=record.take("memory", amount, 0.0),
        load=record.take("load", amount, 0.0),
        bubble=record.take("bubble", amount, None) if known["bubble"] else None,
        degree=record.take("degree", _count, 1, required=False),
        ways=record.take("ways", _counts, {}, required=False),
    )


def _count(value: Any) -> int:
    if whole(value) < 1:
        raise RuleBrokenError("must be an integer of at least 1")
    return whole(value)


def _counts(value: Any) -> dict[str, int]:
    return {name: _count(count) for name, count in mapping(value).items()}


def _tuple_of_texts(value: Any) -> tuple[str, ...]:
    return tuple(texts(value))


def read_schedule(top: Record) -> Schedule | None:
    """Return the schedule of a plan for latency; None if the file has none."""
    if "schedule" not in top.data:
        return None
    record = Record(top.take("schedule", mapping, {}), "schedule", top.flaws)
    entries = [
        _run(data, f"schedule.entries[{place}]", top.flaws)
        for place, data in enumerate(record.take("entries", listing, []))
    ]
    path = record.take("critical_path", wholes, [])
    rule = f"must be positions of entries, from 0 to {len(entries) - 1}"
    for place, entry in enumerate(entries):
        if entry.waits_for is not None and entry.waits_for >= len(entries):
            top.flaws.append(Flaw(f"schedule.entries[{place}]", "waits_for", str(entry.waits_for), rule))
    if any(not 0 <= place < len(entries) for place in path):
        record.note("critical_path", shown(path), rule)
    return Schedule(tuple(entries), tuple(path))


def wholes(value: Any) -> list[int]:
    """Return a JSON array of whole numbers."""
    return [whole(item) for item in listing(value)]


def identifiers(value: Any) -> list[int | str]:
    """Return a JSON array of node ids."""
    return [identifier(item) for item in listing(value)]


def optional_whole(value: Any) -> int | None:
    """Return a whole number of at least 0, or None for null."""
    if value is not None and whole(value) < 0:
        raise RuleBrokenError("must be a whole number of at least 0, or null")
    return None if value is None else whole(value)


def _run(data: Any, where: str, flaws: list[Flaw]) -> Run:
    record = Record(data, where, flaws)
    times = ("start", "finish", "transfer_in", "compute", "transfer_out")
    return Run(
        device=record.take("device", text, ""),
        index=record.take("index", optional_whole, None),
        nodes=tuple(record.take("nodes", identifiers, [])),
        backward=record.take("backward", flag, False),
        waits_for=record.take("waits_for", optional_whole, None),
        **{name: record.take(name, amount, 0.0) for name in times},
    )


PLAIN: dict[str, tuple[Callable[[Any], Any], Any]] = {  # what converts the value, and the default
    "objective": (text, ""),
    "split": (text, None),
    "value": (amount, None),
    "bound": (amount, None),
    "status": (text, ""),
    "stop_reason": (text, ""),
    "method": (text, ""),
    "backend": (text, ""),
    "runtime_seconds": (amount, None),
    "stages": (_tuple_of_texts, ()),
    "workload_sha256": (text, ""),
    "seed": (whole, None),
    "options": (plain_mapping, {}),
    "notes": (_tuple_of_texts, ()),
    "statistics": (plain_mapping, {}),
    "native_status": (text, ""),
}
BUILT: dict[str, Callable[[Record], Any]] = {  # of several values, in other files
    "devices": read_loads,
    "placement": read_devices,
    "subgraphs": lambda top: read_numbers(top, "subgraphs"),
    "stage_of": lambda top: read_numbers(top, "stage_of"),
    "schedule": read_schedule,
    "replicas": read_replicas,
    "execution_order": read_execution_order,
    "hardware": read_hardware,
    "by_stage": read_stages,
    "alternatives": read_chosen,
    "time_unit": lambda top: top.take("time_unit", text, "", required=False),
    "rates": lambda top: top.take("rates", plain_mapping, {}, required=False),
    "parts": lambda top: top.take("parts", plain_mapping, {}, required=False),
    "workload": lambda top: top.take("workload", text, "", required=False),
}
