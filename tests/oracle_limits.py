"""Which placements keep to constraints, from their definition; part of the oracle.

Equal devices are placed in one order only, so pins to devices are read as: nodes pinned to one device share
it, nodes pinned to different devices do not, and all are on devices of the right kind.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

from partitioner import Constraints, Graph
from tests.oracle_placements import Flags, Placements

Range = tuple[int | None, int | None]


def keeping(placements: Placements, constraints: Constraints) -> Flags:
    """Shape (placements,): does the placement keep to the constraints? Patterns are node ids."""
    graph, placed = placements.graph, placements.device
    used = np.stack([(placed == d).any(axis=1) for d in range(len(placements.kinds))], axis=1)
    nodes = np.stack([(placed == d).sum(axis=1) for d in range(len(placements.kinds))], axis=1)
    keep = _goes_where_it_must(placements, constraints)
    keep &= _within(nodes, used, constraints.nodes_per_stage)
    keep &= _within(_layers(placements), used, constraints.layers_per_stage)
    if constraints.stages is not None:
        keep &= used.sum(axis=1) == constraints.stages
    if constraints.use_all_devices:
        keep &= used.all(axis=1)
    if constraints.neighbours_only:
        keep &= _in_lines(graph, placed, len(placements.kinds))
    return keep


def _goes_where_it_must(placements: Placements, constraints: Constraints) -> Flags:
    placed, at = placements.device, placements.graph.position
    kind = np.array([kind.name for kind in placements.kinds])[placed]
    keep = np.ones(len(placed), dtype=bool)
    for node, target in constraints.pin.items():
        keep &= kind[:, at[node]] == target.rstrip("0123456789")
    devices = [(node, target) for node, target in constraints.pin.items() if target[-1].isdigit()]
    for (one, first), (other, second) in combinations(devices, 2):
        keep &= (placed[:, at[one]] == placed[:, at[other]]) == (first == second)
    for node, kinds in constraints.forbid.items():
        keep &= ~np.isin(kind[:, at[node]], kinds)
    for group in constraints.together:
        keep &= (placed[:, [at[node] for node in group]] == placed[:, [at[group[0]]]]).all(axis=1)
    return keep


def _layers(placements: Placements) -> np.ndarray:
    """Shape (placements, devices): how many distinct layers a device holds."""
    placed, layer = placements.device, placements.graph.layer
    held = np.zeros((len(placed), len(placements.kinds)), dtype=np.int64)
    for each in np.unique(layer[layer >= 0]).tolist():
        for d in range(held.shape[1]):
            held[:, d] += (placed[:, layer == each] == d).any(axis=1)
    return held


def _within(amount: np.ndarray, used: np.ndarray, wanted: Range) -> Flags:
    least, most = wanted
    low = amount < (0 if least is None else least)
    high = amount > (np.inf if most is None else most)
    return np.asarray(~(used & (low | high)).any(axis=1))


def _in_lines(graph: Graph, placed: np.ndarray, devices: int) -> Flags:
    """Is there an order of the devices in which every edge joins neighbours or stays at one?"""
    source, target = placed[:, graph.edges[:, 0]], placed[:, graph.edges[:, 1]]
    found = np.zeros(len(placed), dtype=bool)
    for order in permutations(range(devices)):
        place = np.array(order)
        found |= (np.abs(place[source] - place[target]) <= 1).all(axis=1)
    return found
