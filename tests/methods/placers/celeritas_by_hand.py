"""Tasks written out in a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from partitioner import Devices, Graph, Transfers
from partitioner.problem.tasks import Tasks, tasks_of
from partitioner.workload.topological import topological


def tasks_by_hand(
    time: Sequence[float],
    edges: Mapping[tuple[int, int], float],
    *,
    devices: int = 2,
    memory: float | None = None,
    size: Sequence[float] | float = 0.0,
    group: Sequence[int] | None = None,
) -> Tasks:
    """Tasks on equal devices; edges with their costs, which are the transfers' times."""
    graph = Graph.from_arrays({"accelerator": time}, list(edges), list(edges.values()), size=size)
    groups = np.arange(len(time)) if group is None else np.array(group)
    machine = Devices.accelerated(devices, memory=memory)
    return tasks_of(graph, machine, groups, Transfers(slope=1.0), topological(graph.edges, len(graph)))
