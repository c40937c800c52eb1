"""The workloads of a sweep: graphs with the devices of their files, not yet fitted to a pool."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from partitioner.analysis.sweeps.pool import DevicePool
from partitioner.base.errors import Flaw, OptionError, WorkloadError
from partitioner.base.files import is_folder, path_name, read_json
from partitioner.formats.load import load_unfitted
from partitioner.formats.readers import READERS, TAKEN
from partitioner.formats.sailor import is_by_batch
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

MARKS = ("nodes", "layers", "model_type", "architectures", "execution_time", "execution_memory")


@dataclass(frozen=True, eq=False)
class SweptGraph:
    """A graph of a sweep.

    Parameters
    ----------
    name
        The title of the workload.
    graph
        The graph.
    own
        The devices that came with it.
    has_devices
        Whether they were named; else a pool must say how many there are.
    """

    name: str
    graph: Graph
    own: Devices
    has_devices: bool = True

    @cached_property
    def content(self) -> bytes:
        """The pickled graph."""
        return pickle.dumps(self.graph, pickle.HIGHEST_PROTOCOL)

    def devices_of(self, pool: DevicePool) -> Devices:
        """Return the devices of a pool for this workload.

        Raises
        ------
        OptionError
            If neither the workload nor the pool says how many devices there are.
        WorkloadError
            If the pool makes no sound devices of those of the workload.
        """
        if not (self.has_devices or pool.names_devices):
            words = f"{self.name} does not say how many devices there are: needs accelerators or devices"
            raise OptionError(f"pool {pool.label!r}: accelerators = None: {words}")
        try:
            return pool.of(self.own)
        except WorkloadError as error:
            raise type(error)(error.flaws, f"{self.name}, pool {pool.label!r}") from error


def swept(given: Workload | str | os.PathLike[str], options: Mapping[str, Any]) -> SweptGraph:
    """Return a workload, or the one in a file of any format, for a sweep.

    Parameters
    ----------
    given
        The workload, or its file.
    options
        What the format of the file takes in addition, such as ``bandwidth``.

    Raises
    ------
    WorkloadError, OptionError
        As :func:`partitioner.load` does, with the name of the file.
    """
    if isinstance(given, Workload):
        for name in options:
            raise OptionError(f"{name} means nothing to a workload that is not read from a file")
        return SweptGraph(given.name, given.graph, given.devices)
    try:
        graph, own, named = load_unfitted(given, dict(options))
    except OptionError as error:
        raise OptionError(f"{path_name(given)}: {error}") from error
    return SweptGraph(_title(Path(given)), graph, own, named)


def workload_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold a workload, in the order of their names.

    JSON files without any field of a workload, such as a list of devices, are left out.

    Raises
    ------
    WorkloadError
        If there is none, or the folder cannot be read.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise WorkloadError([Flaw("folder", "", "", error.strerror or str(error))], str(folder)) from error
    known = (*TAKEN, *(suffix for reader in READERS.values() for suffix in reader.suffixes))
    found = [file for file in files if file.name.lower().endswith(known) and _is_workload(file)]
    if not found:
        raise WorkloadError(
            [Flaw("folder", "", "", f"must hold a workload ({', '.join(known)})")], str(folder)
        )
    return found


def _is_workload(file: Path) -> bool:
    if file.suffix.lower() != ".json":
        return True
    content = read_json(file)
    return isinstance(content, dict) and (any(mark in content for mark in MARKS) or is_by_batch(content))


def _title(path: Path) -> str:
    return path.name if is_folder(path) else path.stem
