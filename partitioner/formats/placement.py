"""Placements from files: our plan JSON, and the split JSON of msr-fiddle/dnn-partitioning.

A split file holds `fpgas` and `cpus`, each a list of devices with a list of `nodes`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from partitioner.argument_types import require_type
from partitioner.devices import Devices
from partitioner.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.files import path_name, read_json
from partitioner.formats.by_node import known, read_devices
from partitioner.formats.record import Record, identifier, listing
from partitioner.graph import Graph, NodeId

SPLIT_KINDS = {"fpgas": "accelerator", "cpus": "cpu"}


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
    OptionError
        If `complete` is neither True nor False.
    """
    source = path_name(path)
    require_type("graph", graph, Graph)
    require_type("devices", devices, Devices)
    if not isinstance(complete, bool):
        raise OptionError(f"complete = {shown(complete)}: must be True or False")
    flaws: list[Flaw] = []
    top = Record(read_json(path), "file", flaws)
    if not top.broken and not {"placement", "fpgas"} & set(top.data):
        top.others(("placement", "fpgas", "cpus"))
        top.note("", "", "is neither a plan (it has no placement) nor a split (it has no fpgas)")
        raise WorkloadError(flaws, source)
    placement = read_devices(top) if "placement" in top.data else _split(top, flaws)
    by_text = known(graph, placement, "", flaws)
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
