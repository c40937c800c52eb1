"""An exhaustive oracle: the fewest devices and the least memory of a device over all placements.

It tries every placement on every number of devices, and shares no code with the package's methods or its
evaluator.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner import Devices, Graph
from tests.oracle_capacity import of_shape
from tests.oracle_placements import Placements, feasible_placements, values

TOLERANCE = 1 + 1e-9


def fewest(graph: Graph, devices: Devices, kind: str, longest: float, split: str) -> int | None:
    """The least number of devices of a kind with a placement in time; None if no number has one."""
    most = next(each.count for each in devices.kinds if each.name == kind)
    for count in range(most + 1):
        kinds = tuple(replace(each, count=count) if each.name == kind else each for each in devices.kinds)
        if any(each.count for each in kinds) and len(
            within(graph, replace(devices, kinds=kinds), longest, split).device
        ):
            return count
    return None


def least_held(graph: Graph, devices: Devices, kind: str, longest: float, split: str) -> float | None:
    """The least of the largest memory that a device of a kind holds; None if no placement is in time."""
    kinds = tuple(replace(each, memory=None) if each.name == kind else each for each in devices.kinds)
    placements = within(graph, replace(devices, kinds=kinds), longest, split)
    if not len(placements.device):
        return None
    most = np.zeros(len(placements.device))
    for number, each in enumerate(placements.kinds):
        if each.name == kind:
            most = np.maximum(most, (placements.device == number) @ graph.size)
    return float(most.min())


def within(graph: Graph, devices: Devices, longest: float, split: str) -> Placements:
    """All placements of a split that fit the devices and take at most a time per sample."""
    placements = of_shape(feasible_placements(graph, devices), split)
    return placements.only(values(placements, "throughput") <= longest * TOLERANCE)
