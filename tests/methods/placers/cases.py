"""Small random workloads with tasks, for tests of placers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner import Devices, Graph, Transfers, Workload, WorkloadError
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.random_workloads import fitted, in_known_order, uneven_workload

Case = tuple[int, Graph, Devices, Transfers]


def cases(first: int, count: int, most_nodes: int = 9, most_devices: int = 3) -> Iterator[Case]:
    """The valid ones of `count` seeds, with and without contention, uneven links among them."""
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, most_nodes, most_devices)
        graph = in_known_order(graph)
        slope = rng.choice([0.0, 0.5, 2.0], (len(devices.names),) * 2).tolist()
        transfers = Transfers(
            slope=slope if rng.random() < 0.3 else None,
            intercept=float(rng.choice([0.0, 0.0, 0.5])),
            contention=bool(rng.random() < 0.5),
        )
        try:
            Workload(graph, devices)
        except WorkloadError:
            continue
        yield seed, graph, devices, transfers


def problem_of(graph: Graph, devices: Devices, transfers: Transfers) -> OperatorNodes:
    """The workload as a placer is given it for makespans."""
    goal = Goal(Measure.LAST_OPERATOR, "free", transfers=transfers)
    return contract_to(OperatorNodes, fitted(graph, devices), devices, goal)
