"""Devices from a JSON file: kinds, links, the model of communication."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from typing import Any

from partitioner.devices import DeviceKind, Devices
from partitioner.errors import Flaw, WorkloadError
from partitioner.files import path_name, read_json
from partitioner.formats.record import Record, flag, listing, mapping, number, text, whole
from partitioner.levels import Level
from partitioner.transfers import Transfers

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
    source = path_name(path)
    flaws: list[Flaw] = []
    top = Record(read_json(path), "file", flaws)
    given = _taken(top, Devices, (TRANSFERS,))
    kinds = [_made(DeviceKind, data, f"kinds[{i}]", flaws) for i, data in enumerate(given.get("kinds") or [])]
    levels = [_made(Level, data, f"levels[{i}]", flaws) for i, data in enumerate(given.get("levels") or [])]
    try:
        if not flaws:
            return Devices(**given | {"kinds": kinds, "levels": levels})
    except WorkloadError as error:
        flaws += error.flaws
    raise WorkloadError(flaws, source)


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
    top = Record(read_json(path), "file", flaws)
    data = top.take(TRANSFERS, mapping, None, required=False)
    record, known = Record(data or {}, TRANSFERS, flaws), [entry.name for entry in fields(Transfers)]
    for field in record.others(known):
        record.note(field, "", f"is not a field; these are {', '.join(known)}")
    try:
        if not flaws:
            return None if data is None else Transfers(**data)
    except WorkloadError as error:
        flaws += error.flaws
    raise WorkloadError(flaws, path_name(path))


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
