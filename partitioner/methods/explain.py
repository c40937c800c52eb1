"""Which limit rules every plan out."""

from __future__ import annotations

import numpy as np

from partitioner.devices import Devices
from partitioner.graph import Graph


def why_infeasible(graph: Graph, devices: Devices, split: str) -> str:
    """Name the limit that an infeasible workload breaks, as far as simple sums can tell."""
    room = sum(kind.count * kind.memory_limit for kind in devices.kinds if kind.count)
    total = float(graph.size.sum())
    if total > room:
        return f"memory: the nodes take {total:,.6g} together, all devices hold {room:,.6g}"
    for kind in devices.kinds:
        only = _only_on(graph, devices, kind.name)
        need = float(graph.size[only].sum())
        if kind.count and need > kind.count * kind.memory_limit:
            hold = kind.count * kind.memory_limit
            return f"memory: nodes that run on {kind.name} only take {need:,.6g}, these hold {hold:,.6g}"
    if split == "chain":
        return (
            "no chain of stages obeys the limits: each device takes at most one stage, within its memory "
            "and with nodes that it may run, and a colour class or a cycle of classes stays together"
        )
    return (
        f"no {split} split obeys the limits: each device takes nodes that it may run within its memory, "
        "and a colour class stays together"
    )


def _only_on(graph: Graph, devices: Devices, name: str) -> np.ndarray:
    """Which nodes may run on the present kind of that name and on no other present kind."""
    present = {kind.name for kind in devices.kinds if kind.count}
    rows = [graph.kinds.index(kind) for kind in graph.kinds if kind in present and kind != name]
    elsewhere = graph.allowed[rows].any(axis=0)
    return np.asarray(~elsewhere)
