"""What a value is made of: the times of the device with the largest load, and the time in which it waits.

With the load L of that device for a sample and n samples, a value V is n parts of L and a bubble:

    V = n (operators + collectives + updates + transfers + exchange + overlap) + bubble

`overlap` is not above 0: what runs at the same time as other parts, by the model of communication.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from partitioner.evaluation.costs import kind_times
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.text.figures import figure

COLLECTIVES, UPDATES = "collectiveTime", "updateTime"  # of a layer in both passes, in the fields of its nodes
ROUNDING = 1e-12  # of a value: what is smaller is no part of it
WORDS = {
    "operators": "operators",
    "collectives": "collectives of the devices that divide layers",
    "updates": "updates of parameters",
    "transfers": "transfers",
    "exchange": "exchange of weights",
    "overlap": "at the same time",
    "bubble": "bubble",
}


def parts_of_load(placed: Placed, load: DeviceLoad) -> dict[str, float]:
    """Return the parts of a device's load, the first of those that share its stage; they add up to it.

    A device spends the same part of its processing on collectives as its nodes do by their times, of which
    the layers of a config say both. Nodes that run as one of their alternatives say neither.
    """
    graph, compute = placed.graph, sum(load.compute)
    collectives = updates = 0.0
    nodes = np.flatnonzero(placed.device == placed.names.index(load.name))
    whole = float(kind_times(placed)[nodes].sum())
    if whole and not graph.alternatives:
        forward = nodes[~graph.backward[nodes]]
        told = (_told(graph.extras.nodes, forward, name) for name in (COLLECTIVES, UPDATES))
        collectives, updates = (compute * part / whole for part in told)
    parts = {
        "operators": compute - collectives - updates,
        "collectives": collectives,
        "updates": updates,
        "transfers": sum(load.transfer_in) + sum(load.transfer_out),
        "exchange": load.sync,
    }
    return parts | {"overlap": min(0.0, load.load - sum(parts.values()))}


def parts_of_value(parts: Mapping[str, float], samples: int, value: float) -> dict[str, float]:
    """Return the parts of a value, which add up to it; none if it is infinite.

    Parameters
    ----------
    parts
        The parts of the largest load for a sample.
    samples
        How many samples the device processes within the value.
    value
        The value, a time.

    Examples
    --------
    >>> parts_of_value({"operators": 3.0, "transfers": 1.0}, 4, 18.0)
    {'operators': 12.0, 'transfers': 4.0, 'bubble': 2.0}
    """
    if not parts or not math.isfinite(value):
        return {}
    found = {name: samples * time for name, time in parts.items()}
    waits = value - sum(found.values())
    busier = waits < 0  # as one whose cores run several nodes at once is
    found |= {"overlap": found.get("overlap", 0.0) + min(0.0, waits), "bubble": 0.0 if busier else waits}
    return {name: found[name] for name in WORDS if abs(found.get(name, 0.0)) > ROUNDING * value}


def parts_of_largest(placed: Placed, loads: Iterable[DeviceLoad]) -> dict[str, float]:
    """Return the parts of the largest load; none where no device has nodes."""
    largest = _largest(loads)
    return {} if largest is None else parts_of_load(placed, largest)


def _largest(loads: Iterable[DeviceLoad]) -> DeviceLoad | None:
    used = (load for load in loads if load.nodes and load.replica_of is None)
    return max(used, key=lambda load: load.load, default=None)


def parts_in_words(parts: Mapping[str, float]) -> str:
    """Return the parts in one line.

    Examples
    --------
    >>> parts_in_words({"operators": 12.0, "transfers": 4.0, "overlap": -1.0, "bubble": 2.0})
    '12 operators, 4 transfers, less 1 at the same time, 2 bubble'
    """
    texts = (
        f"{'less ' * (time < 0)}{figure(abs(time))} {WORDS.get(name, name)}"
        for name, time in parts.items()
        if time
    )
    return ", ".join(texts)


def notes_on_parts(placed: Placed, loads: Iterable[DeviceLoad]) -> tuple[str, ...]:
    """Return a note on what the largest load is made of, if the graph tells collectives or updates."""
    largest = _largest(loads)
    parts = {} if largest is None else parts_of_load(placed, largest)
    if largest is None or not (parts["collectives"] or parts["updates"]):
        return ()
    words = parts_in_words(parts)
    return (f"{largest.name} has the largest load, {figure(largest.load)} for a sample: {words}",)


def _told(fields: Any, nodes: Any, name: str) -> float:
    """Return the sum of a field of some nodes, 0 where they do not have it."""
    told: list[Mapping[str, Any]] = [fields[i] for i in nodes.tolist()] if len(fields) else []
    return float(sum(node.get(name, 0.0) for node in told))
