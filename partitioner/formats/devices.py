"""Reading of devices from a JSON file: kinds, levels or groups with links, the model of communication."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import path_name, read_json
from partitioner.formats.record import Record, flag, listing, mapping, number, text, texts, whole
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.groups import DeviceGroup, GroupLink
from partitioner.workload.levels import Level
from partitioner.workload.transfers import Transfers

TRANSFERS = "transfers"
READERS: dict[str, Any] = {
    "name": text,
    "count": whole,
    "memory": number,
    "pays_communication": flag,
    "times": text,
    "time_factor": number,
    "transfer_factor": number,
    "bandwidth": number,
    "devices": mapping,
    "slowdown": number,
    "kinds": listing,
    "communication": text,
    "levels": listing,
    "synchronisation": text,
    "groups": listing,
    "links": listing,
    "between": texts,
    "exchange": text,
    "route": text,
    "link_latency": number,
}
CLASSES: dict[str, Any] = {"kinds": DeviceKind, "levels": Level, "groups": DeviceGroup, "links": GroupLink}


def load_devices(path: str | os.PathLike[str]) -> Devices:
    """Return the devices in a file.

    The file holds an object with the fields of :class:`partitioner.Devices`: `kinds`, a list of objects with
    the fields of :class:`partitioner.DeviceKind`; and optionally `communication`, `synchronisation`,
    `exchange`, `route`, `link_latency`, `levels`, a list of objects with the fields of
    :class:`partitioner.Level`, or `groups` and `links`, with those of :class:`partitioner.DeviceGroup` and
    :class:`partitioner.GroupLink`.
    :func:`load_transfers` reads the optional field `transfers`.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    devices = read_devices(Record(read_json(path), "file", flaws), (TRANSFERS,))
    if devices is None:
        raise WorkloadError(flaws, path_name(path))
    return devices


def read_devices(top: Record, further: tuple[str, ...] = ()) -> Devices | None:
    """Return the devices that a JSON object describes; None if flaws are added.

    The object may also have the fields `further`, which are not read.
    """
    flaws = top.flaws
    before = len(flaws)
    given = _fields(top, Devices, further)
    prefix = "" if top.where == "file" else f"{top.where}."
    lists = {
        name: [
            _made(of_class, data, f"{prefix}{name}[{i}]", flaws) for i, data in enumerate(given[name] or [])
        ]
        for name, of_class in CLASSES.items()
        if name in given
    }
    try:
        return Devices(**given | lists) if len(flaws) == before else None
    except WorkloadError as error:
        flaws += error.flaws
        return None


def load_transfers(path: str | os.PathLike[str]) -> Transfers | None:
    """Return the model of transfer times in the field `transfers` of a devices file; None without one.

    The field is an object with the fields of :class:`partitioner.Transfers`; rows and columns of a matrix are
    in the order of the devices, kind by kind.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_transfers(Record(read_json(path), "file", flaws))
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return found


def read_transfers(top: Record) -> Transfers | None:
    """Return the model in the field `transfers`; None if there is no such field, or if flaws are added."""
    data = top.take(TRANSFERS, mapping, None, required=False)
    before = len(top.flaws)
    record, known = Record(data or {}, TRANSFERS, top.flaws), [entry.name for entry in fields(Transfers)]
    for field in record.others(known):
        record.note(field, "", f"is not a field; these are {', '.join(known)}")
    try:
        return None if data is None or len(top.flaws) > before else Transfers(**data)
    except WorkloadError as error:
        top.flaws += error.flaws
        return None


def _made(of_class: Any, data: Any, where: str, flaws: list[Flaw]) -> Any:
    """Return an object of that class made from a JSON object; None if flaws are added."""
    before = len(flaws)
    given = _fields(Record(data, where, flaws), of_class)
    try:
        return of_class(**given) if len(flaws) == before else None
    except WorkloadError as error:
        flaws += error.flaws
        return None


def _fields(record: Record, of_class: Any, further: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a record that the class has; null means that the field is left out.

    A field that is neither of the class nor one of `further` adds a flaw.
    """
    known = [entry.name for entry in fields(of_class)]
    required = [entry.name for entry in fields(of_class) if entry.default is MISSING]
    for field in record.others((*known, *further)):
        record.note(field, "", f"is not a field; these are {', '.join((*known, *further))}")
    left_out = [name for name in known if name not in required and record.data.get(name) is None]
    return {
        name: record.take(name, READERS[name], None, name in required)
        for name in known
        if name not in left_out
    }
