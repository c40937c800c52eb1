"""Reading of a folder of profiles of one model, measured on several kinds of devices.

The folder has a folder for each kind, as in Metis's and Sailor's repositories: ``GH-96/mbs1_tmp4.json`` is a
profile of Metis at microbatch size 1 and tensor-parallel degree 4, ``GH-96/profile.json`` one of Sailor's in
Piper's format for all sizes and degrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.base.files import read_json
from partitioner.formats.metis import metis_graph
from partitioner.formats.pass_shares import BACKWARD_SHARE
from partitioner.formats.sailor import sailor_graph
from partitioner.formats.several_kinds import joined, one_of_each
from partitioner.workload.devices import Devices
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph

BY_SIZE = re.compile(r"mbs([0-9]{1,9})_tmp([0-9]{1,9})\.json")
BY_KIND = "profile.json"
SAME = ("ids", "edges", "cost")  # what the profiles of a model must agree in
Profile = tuple[Graph, Devices]


def folder_graph(
    content: None,
    source: str,
    *,
    batch: int | None = None,
    degree: int = 1,
    bandwidth: float | None = None,
    training: bool = True,
    backward_share: float = BACKWARD_SHARE,
) -> tuple[Graph, Devices]:
    """Return the layer graph of a folder of profiles, with times on every kind, and one device of each.

    A device is a group of `degree` devices that run a layer together. Kinds without a profile of that size
    and degree are left out. The memory of a layer is the largest that a profile states.

    Parameters
    ----------
    content, source
        None, and the folder.
    batch
        The microbatch size, None for the only one.
    degree
        The tensor-parallel degree.
    bandwidth
        Bytes per second between a device and host memory.
    training, backward_share
        Whether to add backward nodes, and the part of a layer's time that the backward pass takes.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    OptionError
        If an option is missing or not in its range.
    """
    if not is_count(degree):
        raise OptionError(f"degree = {shown(degree)}: must be an integer of at least 1")
    options = {"bandwidth": bandwidth, "training": training, "backward_share": backward_share}
    size = _size(Path(source), batch, degree)
    profiles = {
        folder.name: found
        for folder in _folders(Path(source))
        if (found := _profile(folder, size, degree, options)) is not None
    }
    if not profiles:
        known = ", ".join(map(str, sorted(_sizes(Path(source), degree)))) or "none at this degree"
        raise OptionError(f"batch = {shown(batch)}: must be a size of the folder's profiles: {known}")
    return _joined(profiles, source, size, degree)


def _entries(folder: Path) -> list[Path]:
    """Return what a folder holds, in the order of the names."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise WorkloadError([Flaw("folder", "", "", reason)], str(folder)) from error


def _folders(folder: Path) -> list[Path]:
    return [each for each in _entries(folder) if each.is_dir()]


def _sizes(folder: Path, degree: int) -> set[int]:
    """Return the microbatch sizes of a folder's profiles at a degree."""
    found: set[int] = set()
    for kind in _folders(folder):
        names = [match for each in _entries(kind) if (match := BY_SIZE.fullmatch(each.name))]
        found |= {int(match[1]) for match in names if int(match[2]) == degree}
        if not names and (kind / BY_KIND).exists():
            found |= {int(name) for name in _by_batch(kind / BY_KIND)}
    return found


def _size(folder: Path, batch: int | None, degree: int) -> int:
    """Return the microbatch size that is meant."""
    if batch is not None and not is_count(batch):
        raise OptionError(f"batch = {shown(batch)}: must be an integer of at least 1")
    if batch is not None:
        return batch
    sizes = sorted(_sizes(folder, degree))
    if len(sizes) == 1:
        return sizes[0]
    if not sizes:
        rule = f"must hold a folder for each kind of device, with mbs1_tmp{degree}.json or {BY_KIND} in it"
        raise WorkloadError([Flaw("folder", "", "", rule)], str(folder))
    raise OptionError(f"batch = None: must be a size of the folder's profiles: {', '.join(map(str, sizes))}")


def _by_batch(path: Path) -> Mapping[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict) or not all(name.isascii() and name.isdigit() for name in content):
        rule = "must be an object of inputs of Piper by microbatch size"
        raise WorkloadError([Flaw("file", "", shown(content), rule)], str(path))
    return content


def _profile(folder: Path, size: int, degree: int, options: dict[str, Any]) -> Profile | None:
    """Return the profile of one kind; None if it has none of that size and degree."""
    path = folder / f"mbs{size}_tmp{degree}.json"
    if path.exists():
        return metis_graph(read_json(path), str(path), **options)
    path = folder / BY_KIND
    content = _by_batch(path) if path.exists() else {}
    if str(size) not in content or not _has_degree(content[str(size)], degree):
        return None
    return sailor_graph(content, str(path), batch=size, degree=degree, **options)


def _has_degree(content: Any, degree: int) -> bool:
    """Whether some node of an input of Piper has figures for a degree."""
    nodes = content.get("nodes") if isinstance(content, dict) else None
    options = [node.get("TMPCs") for node in nodes or () if isinstance(node, dict)]
    return any(isinstance(each, dict) and str(degree) in each for each in options)


def _joined(profiles: Mapping[str, Profile], source: str, size: int, degree: int) -> tuple[Graph, Devices]:
    """Return the graph with a row of times for every kind, and one device of each kind."""
    graphs = {name: graph for name, (graph, _) in profiles.items()}
    first = next(iter(graphs.values()))
    flaws = [
        Flaw(f"folder {name}", field, "", f"must be as in folder {next(iter(graphs))}")
        for name, graph in list(graphs.items())[1:]
        for field in SAME
        if not np.array_equal(getattr(first, field), getattr(graph, field))
    ]
    if flaws:
        raise WorkloadError(flaws, source)
    extras = Extras({**first.extras.top, "batch": size, "degree": degree}, first.extras.nodes)
    graph = replace(joined(graphs), extras=extras)
    return graph, one_of_each({name: own for name, (_, own) in profiles.items()})
