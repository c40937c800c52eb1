"""Tasks of small graphs."""

from __future__ import annotations

import numpy as np

from partitioner import Devices, Graph, Transfers
from partitioner.problem.groups import colocated_groups
from partitioner.problem.tasks import Tasks, tasks_of
from partitioner.workload.topological import topological
from tests.random_workloads import fitted, uneven_workload


def as_tasks(graph: Graph, devices: Devices, transfers: Transfers | None = None) -> Tasks:
    """The tasks of a workload."""
    graph = fitted(graph, devices)
    return tasks_of(
        graph,
        devices,
        colocated_groups(graph),
        transfers or Transfers(),
        topological(graph.edges, len(graph)),
    )


def random_transfers(rng: np.random.Generator, devices: Devices) -> Transfers:
    """By the factors of the devices, or a line for each pair; now and then with contention."""
    count = len(devices.names)
    contention = bool(rng.random() < 0.3)
    if rng.random() < 0.4:
        return Transfers(contention=contention)
    slope, intercept = rng.choice([0.0, 0.5, 1.0, 2.0], (2, count, count))
    return Transfers(slope.tolist(), intercept.tolist(), contention)


def random_tasks(rng: np.random.Generator, most_nodes: int = 12, most_devices: int = 4) -> Tasks:
    """Tasks with memory limits, groups, kinds and transfers."""
    graph, devices = uneven_workload(rng, most_nodes, most_devices)
    return as_tasks(graph, devices, random_transfers(rng, devices))
