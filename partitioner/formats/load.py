"""Reading of a workload from a file of any format."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError, nearest, shown
from partitioner.base.files import path_name
from partitioner.base.units import byte_count
from partitioner.formats.devices_in_place import changed
from partitioner.formats.file_formats import FileFormat, recognised
from partitioner.formats.msr import workload_of
from partitioner.formats.readers import read_foreign
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload


def load(
    path: str | os.PathLike[str],
    communication: str | None = None,
    *,
    devices: Devices | None = None,
    accelerators: int | None = None,
    memory: float | str | None = None,
    cpus: int | None = None,
    **options: Any,
) -> Workload:
    """Return the workload in a file; ``docs/graphs_in.md`` lists the formats.

    Parameters
    ----------
    path
        The file, or a folder of profiles. Times are in ms (in a workload file: in one unit of the user's
        choice), sizes in bytes.
    communication
        The model of communication, see :class:`partitioner.Devices`; None for that of the file, which is
        ``"sequential"`` if the file names none.
    devices
        The devices, in place of those of the file.
    accelerators, memory, cpus
        The number of accelerators, the bytes of memory of each (also a text, ``"16GiB"``) and the number of
        CPUs; None for those of the file. A file without devices needs `accelerators` or `devices`.
    **options
        What the format of the file takes in addition, such as ``bandwidth`` in bytes per second.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    OptionError
        If an option means nothing to the format of the file, is missing, or is not in its range.
    """
    sizes = checked_sizes(accelerators, memory, cpus, devices)
    foreign = read_foreign(path_name(path))
    if foreign is None:
        return assembled(path, *recognised(path), options, sizes, devices, communication)
    _check_options("this file", (), options)
    return replace(foreign, devices=_devices(foreign.devices, devices, sizes, communication))


def assembled(
    path: str | os.PathLike[str],
    file_format: FileFormat,
    content: Any,
    options: dict[str, Any],
    sizes: dict[str, Any],
    devices: Devices | None = None,
    communication: str | None = None,
) -> Workload:
    """Return the workload of a file's content, of which the format is known; `sizes` change its devices."""
    _check_options(file_format.name, file_format.options, options)
    named = file_format.names_devices(options.get("device"))
    if not (named or devices or sizes["accelerators"] is not None):
        raise OptionError(f"accelerators = None: {file_format.name} needs accelerators or devices")
    graph, own = file_format.read(content, path_name(path), **options)
    return workload_of(path, graph, _devices(own, devices, sizes, communication))


def load_unfitted(path: str | os.PathLike[str], options: dict[str, Any]) -> tuple[Graph, Devices, bool]:
    """Return the graph and the devices in a file, each checked, but not whether they fit together.

    The third value says whether the file names its devices; if not, there is one accelerator. `options` are
    what the format of the file takes in addition; errors are those of :func:`load`.
    """
    foreign = read_foreign(path_name(path))
    if foreign is not None:
        _check_options("this file", (), options)
        return foreign.graph, foreign.devices, True
    file_format, content = recognised(path)
    _check_options(file_format.name, file_format.options, options)
    return *file_format.read(content, path_name(path), **options), file_format.has_devices


def checked_sizes(
    accelerators: int | None, memory: float | str | None, cpus: int | None, devices: Devices | None = None
) -> dict[str, Any]:
    """Return by name what shall differ from a file's devices, with the memory as a number.

    Raises
    ------
    OptionError
        If devices are given in addition, or the memory is a text that is no number of bytes.
    """
    nbytes = byte_count(memory) if isinstance(memory, str) else memory
    sizes = {"accelerators": accelerators, "memory": nbytes, "cpus": cpus}
    if devices is not None:
        require_type("devices", devices, Devices)
        for name, value in sizes.items():
            if value is not None:
                raise OptionError(f"{name} and devices say the same: give one of them")
    return sizes


def _devices(
    own: Devices, devices: Devices | None, sizes: dict[str, Any], communication: str | None
) -> Devices:
    return changed(own if devices is None else devices, **sizes, communication=communication)


def _check_options(name: str, known: tuple[str, ...], options: dict[str, Any]) -> None:
    for option, value in options.items():
        if option not in known:
            words = f"its options are {', '.join(known)}" if known else "it takes no options"
            rule = f"means nothing to {name}; {words}{nearest(option, known)}"
            raise OptionError(f"{option} = {shown(value)}: {rule}")
