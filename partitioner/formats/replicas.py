"""The stages of a plan file: on which devices, and in which order."""

from __future__ import annotations

import os

from partitioner.errors import Flaw, WorkloadError
from partitioner.files import path_name, read_json
from partitioner.formats.record import Record, mapping, texts


def load_replicas(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Read which further devices hold copies of a plan's stages; empty if the file names none.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_replicas(Record(read_json(path), "file", flaws))
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return found


def load_order(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Read the order of a plan's stages, a device each; None if the file has none.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = Record(read_json(path), "file", flaws).take("stages", texts, [], required=False)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return tuple(found) or None


def read_replicas(top: Record) -> dict[str, tuple[str, ...]]:
    """The replicas of a plan; empty if it has none."""
    given = top.take("replicas", mapping, {}, required=False)
    entries = Record(given, "replicas", top.flaws)
    return {name: tuple(entries.take(name, texts, [])) for name in given}
