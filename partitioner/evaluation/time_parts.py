"""What the processing of a device is made of: operators, collectives of those that divide layers, updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.text.figures import figure

COLLECTIVES, UPDATES = "collectiveTime", "updateTime"  # of a layer in both passes, in the fields of its nodes


class TimeParts(NamedTuple):
    """The parts of a device's processing, which add up to it; times per sample."""

    operators: float
    collectives: float
    updates: float


def time_parts(placed: Placed, load: DeviceLoad) -> TimeParts:
    """Return the parts of the processing of a device, the first of those that share its stage.

    A device spends the same part of its processing on collectives as its nodes do by their times, of which
    the layers of a config say both. Nodes that run as one of their alternatives say neither.
    """
    graph, compute = placed.graph, sum(load.compute)
    mine = placed.device == placed.names.index(load.name)
    if graph.alternatives or not mine.any() or not compute:
        return TimeParts(compute, 0.0, 0.0)
    nodes = np.flatnonzero(mine)
    whole = float(graph.time[placed.row[nodes], nodes].sum())
    told = [_told(graph.extras.nodes, nodes[~graph.backward[nodes]], name) for name in (COLLECTIVES, UPDATES)]
    collectives, updates = (compute * part / whole for part in told)
    return TimeParts(compute - collectives - updates, collectives, updates)


def notes_on_parts(placed: Placed, loads: Iterable[DeviceLoad]) -> tuple[str, ...]:
    """Return a note on what the largest load is made of, if the graph tells collectives or updates."""
    used = [load for load in loads if load.nodes and load.replica_of is None]
    largest = max(used, key=lambda load: load.load, default=None)
    if largest is None:
        return ()
    parts = time_parts(placed, largest)
    if not parts.collectives and not parts.updates:
        return ()
    named = {
        "operators": parts.operators,
        "collectives of the devices that divide layers": parts.collectives,
        "updates of parameters": parts.updates,
        "transfers": sum(largest.transfer_in) + sum(largest.transfer_out),
        "exchange of weights": largest.sync,
    }
    words = ", ".join(f"{figure(time)} {name}" for name, time in named.items() if time)
    return (f"{largest.name} has the largest load, {figure(largest.load)} for a sample: {words}",)


def _told(fields: Any, nodes: Any, name: str) -> float:
    """Return the sum of a field of some nodes, 0 where they do not have it."""
    told: list[Mapping[str, Any]] = [fields[i] for i in nodes.tolist()] if len(fields) else []
    return float(sum(node.get(name, 0.0) for node in told))
