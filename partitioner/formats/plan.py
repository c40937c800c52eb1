"""Reading of plans from files."""

from __future__ import annotations

import math
import os
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import path_name, read_json
from partitioner.evaluation.result import DeviceLoad
from partitioner.formats.by_node import read_devices, read_execution_order, read_subgraphs
from partitioner.formats.devices import read_devices as read_devices_record
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    listing,
    mapping,
    pair,
    text,
    texts,
    whole,
)
from partitioner.formats.replicas import read_replicas
from partitioner.formats.schedule import read_schedule
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices

DEEPEST = 6
DEVICE_PAIRS = ("compute", "transfer_in", "transfer_out")


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan in a file that :meth:`partitioner.Plan.save` has written.

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
        placement=read_devices(top),
        workload_sha256=top.take("workload_sha256", text, ""),
        seed=top.take("seed", whole, 0),
        options=top.take("options", plain_mapping, {}),
        notes=tuple(top.take("notes", texts, [])),
        statistics=top.take("statistics", plain_mapping, {}),
        native_status=top.take("native_status", text, ""),
        subgraphs=read_subgraphs(top),
        schedule=read_schedule(top),
        replicas=read_replicas(top),
        execution_order=read_execution_order(top),
        hardware=read_hardware(top),
    )
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return plan


def read_hardware(top: Record) -> Devices | None:
    """Return the devices that the plan is made for; None if the file does not contain them."""
    data = top.take("hardware", mapping, None, required=False)
    return None if data is None else read_devices_record(Record(data, "hardware", top.flaws))


def filled(value: Any) -> list[Any]:
    """Return a JSON array, which must not be empty."""
    if not listing(value):
        raise RuleBrokenError("must not be empty")
    return listing(value)


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
