"""Random problems for the search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner import WorkloadError
from partitioner.problem.goal import Goal
from tests.contracted import Wanted, contract_to
from tests.random_workloads import fitted, uneven_workload


def problems(
    wanted: type[Wanted], seeds: range, goal: Goal, most_nodes: int = 14, most_devices: int = 5
) -> Iterator[tuple[int, Wanted]]:
    """Problems of a type with several devices on which every supernode may run, by seed."""
    for seed in seeds:
        graph, devices = uneven_workload(np.random.default_rng(seed), most_nodes, most_devices)
        try:
            problem = contract_to(wanted, fitted(graph, devices), devices, goal)
        except WorkloadError:
            continue
        runs = (problem.allowed & (problem.count > 0)[:, None]).any(axis=0).all()
        if problem.count.sum() > 1 and runs:
            yield seed, problem
