"""The exhaustive oracle for chains under GPipe: least largest forward plus largest backward load.

It tries every placement of colour classes and lone nodes, as :mod:`tests.oracle` does, and shares no code
with the methods or the evaluator. Where only neighbouring stages may exchange tensors, some order of the
stages must be that of the pipeline and a line.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from partitioner import Constraints, Devices, Graph
from partitioner.workload.constraints import NONE
from tests.oracle import arcs
from tests.oracle_limits import keeping
from tests.oracle_placements import Flags, Placements, feasible_placements, values


def best_chain_by_pass(graph: Graph, devices: Devices, constraints: Constraints = NONE) -> float | None:
    """The least value of all feasible chains; None if there is none."""
    placements = feasible_placements(graph, devices)
    placements = placements.only(keeping(placements, constraints))
    placements = placements.only(_is_pipeline(placements, bool(constraints.neighbours_only)))
    value = values(placements, "gpipe")
    return float(value.min()) if len(value) else None


def _is_pipeline(placements: Placements, in_line: bool) -> Flags:
    """Is there an order of the devices in which no arc leads back and, on request, no edge over a device?"""
    placed = placements.device
    found = np.zeros(len(placed), dtype=bool)
    for order in permutations(range(len(placements.kinds))):
        place = np.array(order)[placed]
        good = np.ones(len(placed), dtype=bool)
        for earlier, later in arcs(placements.graph):
            good &= place[:, earlier] <= place[:, later]
        if in_line:
            ends = place[:, placements.graph.edges]
            good &= (np.abs(ends[:, :, 0] - ends[:, :, 1]) <= 1).all(axis=1)
        found |= good
    return found
