"""Reading of plans and placements from files."""

from __future__ import annotations

import os
from dataclasses import fields

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.base.files import path_name, read_json
from partitioner.formats.plan_fields import read_fields
from partitioner.formats.plan_record import load_record, resolved
from partitioner.formats.record import Record
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId

FIELDS = tuple(field.name for field in fields(Plan))


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan in a file that :meth:`partitioner.Plan.save` has written.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_fields(Record(read_json(path), "file", flaws), FIELDS, required=True)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return Plan(**found)


# Reading of placements: from plans of this package, and from splits of msr-fiddle/dnn-partitioning.


def load_placement(
    path: str | os.PathLike[str], graph: Graph, devices: Devices | None = None, complete: bool = True
) -> dict[NodeId, str]:
    """Return the device of every node of a graph, from a plan file or a split file.

    Parameters
    ----------
    path
        A plan as :meth:`partitioner.Plan.save` writes it, or a split file.
    graph
        The graph whose nodes the file places.
    devices
        The devices that the file may name; None for those that the plan is made for.
    complete
        Whether to place a node that the file leaves out with the nodes of its colour class. Splits made by
        hand often leave out backward nodes.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken, or if a plan is made for
        another graph.
    OptionError
        If `complete` is neither True nor False.
    """
    path_name(path)
    require_type("graph", graph, Graph)
    if devices is not None:
        require_type("devices", devices, Devices)
    if not isinstance(complete, bool):
        raise OptionError(f"complete = {shown(complete)}: must be True or False")
    record = load_record(path)
    return dict(resolved(record, graph, record.devices(devices), complete).placement)
