"""Devices from a JSON file: kinds, links, the model of communication."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import path_name, read_json
from partitioner.formats.record import Record, flag, listing, mapping, number, text, whole
from partitioner.workload.devices import DeviceKind, Devices
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
}


def load_devices(path: str | os.PathLike[str]) -> Devices:
    """Read a devices file.

    It is an object with the fields of :class:`partitioner.Devices`: `kinds`, a list of objects with the
    fields of :class:`partitioner.DeviceKind`, and if need be `communication`, `synchronisation` and
    `levels`, a list of objects with the fields of :class:`partitioner.Level`, all by the same names. Its
    `transfers`, if any, are for :func:`load_transfers`.

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


def read_devices(top: Record, beside: tuple[str, ...] = ()) -> Devices | None:
    """Return the devices that a JSON object describes, or None where flaws are noted."""
    flaws = top.flaws
    before = len(flaws)
    given = _taken(top, Devices, beside)
    prefix = "" if top.where == "file" else f"{top.where}."
    kinds = [
        _made(DeviceKind, data, f"{prefix}kinds[{i}]", flaws)
        for i, data in enumerate(given.get("kinds") or [])
    ]
    levels = [
        _made(Level, data, f"{prefix}levels[{i}]", flaws) for i, data in enumerate(given.get("levels") or [])
    ]
    try:
        return Devices(**given | {"kinds": kinds, "levels": levels}) if len(flaws) == before else None
    except WorkloadError as error:
        flaws += error.flaws
        return None


def load_transfers(path: str | os.PathLike[str]) -> Transfers | None:
    """Read how tensors travel from a devices file: its object `transfers`, None without one.

    The object has the fields of :class:`partitioner.Transfers`; rows and columns of a square are in the
    order of the devices, kind by kind.

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
    """Return how tensors travel by the object `transfers`; None without one, or where flaws are noted."""
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


def _made(noun: Any, data: Any, where: str, flaws: list[Flaw]) -> Any:
    """An object of that class, or None if something is wrong with its fields."""
    before = len(flaws)
    given = _taken(Record(data, where, flaws), noun)
    try:
        return noun(**given) if len(flaws) == before else None
    except WorkloadError as error:
        flaws += error.flaws
        return None


def _taken(record: Record, noun: Any, beside: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a record that belong to the class; null is as good as nothing, `beside` is let be."""
    known = [entry.name for entry in fields(noun)]
    required = [entry.name for entry in fields(noun) if entry.default is MISSING]
    for field in record.others((*known, *beside)):
        record.note(field, "", f"is not a field; these are {', '.join((*known, *beside))}")
    left_out = [name for name in known if name not in required and record.data.get(name) is None]
    return {
        name: record.take(name, READERS[name], None, name in required)
        for name in known
        if name not in left_out
    }
