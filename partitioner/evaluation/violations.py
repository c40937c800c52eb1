"""The rules that a placement breaks, as messages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from partitioner.base.errors import shown
from partitioner.evaluation.placed import Placed
from partitioner.workload.graph import Floats
from partitioner.workload.graph_validation import node_name

NOTHING: Mapping[int, str] = {}


def violations_of(
    placed: Placed, memory: Floats | None = None, held: Mapping[int, str] = NOTHING
) -> tuple[str, ...]:
    """Return a message for every broken rule.

    The rules are: devices exist, memory suffices, a node may run on the kind of its device, and the nodes of
    a colour class are on one device.

    Parameters
    ----------
    placed
        The placement.
    memory
        Shape (devices,): the memory that each device holds; None to count each part of the memory once.
    held
        For a device a remark on its memory.
    """
    memory = placed.memory if memory is None else memory
    found = _missing_devices(placed) + _full_devices(placed, memory, held) + _wrong_kinds(placed)
    return tuple(found + _torn_colors(placed))


def _missing_devices(placed: Placed) -> list[str]:
    present = set(placed.devices.names)
    counts = ", ".join(f"{kind.count} of kind {kind.name}" for kind in placed.devices.kinds)
    return [f"{name} does not exist: there are {counts}" for name in placed.names if name not in present]


def _full_devices(placed: Placed, memory: Floats, held: Mapping[int, str]) -> list[str]:
    kinds = [placed.devices.kinds[k] for k in placed.kind]
    return [
        f"{name} holds {memory[i]:,.6g}{held.get(i, '')}, its memory is {kinds[i].memory:,.6g}"
        for i, name in enumerate(placed.names)
        if memory[i] > kinds[i].memory_limit
    ]


def _wrong_kinds(placed: Placed) -> list[str]:
    graph = placed.graph
    may = (placed.row >= 0) & graph.allowed[placed.row, np.arange(len(graph))]
    return [
        f"{node_name(graph, i)} may not run on {placed.names[placed.device[i]]}"
        for i in np.flatnonzero(~may).tolist()
    ]


def _torn_colors(placed: Placed) -> list[str]:
    graph, names, device = placed.graph, placed.names, placed.device
    found = []
    home: dict[int, int] = {}
    colored = np.flatnonzero(graph.color >= 0)
    for i, color in zip(colored.tolist(), graph.color[colored].tolist(), strict=True):
        first = home.setdefault(color, i)
        if device[first] != device[i]:
            found.append(
                f"colour class {shown(graph.color_labels[color])} is on two devices: "
                f"{node_name(graph, first)} on {names[device[first]]}, "
                f"{node_name(graph, i)} on {names[device[i]]}"
            )
    return found
