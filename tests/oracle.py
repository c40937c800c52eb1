"""An exhaustive oracle: the best chain, convex and free split over all placements.

It tries every assignment of colour classes and lone nodes to devices (equal devices once), computes
the loads from the definition, and judges shapes by paths. It shares no code with the package's methods
or its evaluator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partitioner import Constraints, Devices, Graph
from partitioner.workload.constraints import NONE
from tests.oracle_limits import keeping
from tests.oracle_placements import Placements, feasible_placements, values

Flags = NDArray[np.bool_]
Arcs = list[tuple[int, int]]


def best_chain_value(graph: Graph, devices: Devices) -> float | None:
    """The smallest largest load over all feasible chains; None if there is none."""
    placements = feasible_placements(graph, devices)
    return _least(values(placements.only(is_chain(placements)), "throughput"))


def best_values(
    graph: Graph,
    devices: Devices,
    objective: str = "throughput",
    contiguous_cpus: bool = True,
    contiguous_backward: bool = False,
    constraints: Constraints = NONE,
) -> dict[str, float | None]:
    """The smallest value over all feasible chains, convex and free splits; None where there is none.

    The options say what convex means: contiguous on devices that pay for no transfers too? In the
    backward part too? With either changed, a chain need not be convex.
    """
    placements = feasible_placements(graph, devices)
    placements = placements.only(keeping(placements, constraints))
    value = values(placements, objective)
    bound = [d for d, kind in enumerate(placements.kinds) if kind.pays_communication or contiguous_cpus]
    convex = is_contiguous(placements, ~graph.backward, bound)
    if contiguous_backward:
        convex &= is_contiguous(placements, graph.backward, bound)
    chain = is_chain(placements)
    return {"chain": _least(value[chain]), "convex": _least(value[convex]), "free": _least(value)}


def _least(value: NDArray[np.float64]) -> float | None:
    return float(value.min()) if len(value) else None


def is_contiguous(placements: Placements, part: Flags, bound: list[int]) -> Flags:
    """Definition 3.1: no path inside the part from a bound device to another one and back."""
    device = placements.device
    reach = np.zeros((len(part), len(part)), dtype=bool)
    for u, v in placements.graph.edges.tolist():
        reach[u, v] = part[u] and part[v]
    for via in range(len(part)):
        reach |= np.outer(reach[:, via], reach[via])
    held = np.isin(device, bound)
    torn = np.zeros(len(device), dtype=bool)
    for u, v in np.argwhere(reach).tolist():
        for w in np.flatnonzero(reach[v]).tolist():
            torn |= held[:, u] & (device[:, u] == device[:, w]) & (device[:, u] != device[:, v])
    return ~torn


def is_chain(placements: Placements) -> Flags:
    """No cycle among the devices over forward edges and mirrored edges of orphans."""
    placed, count = placements.device, len(placements.kinds)
    reach = np.zeros((len(placed), count, count), dtype=bool)
    row = np.arange(len(placed))
    for source, target in arcs(placements.graph):
        moved = placed[:, source] != placed[:, target]
        reach[row[moved], placed[moved, source], placed[moved, target]] = True
    for via in range(count):
        reach |= reach[:, :, via, None] & reach[:, None, via, :]
    return np.asarray(~reach[:, np.arange(count), np.arange(count)].any(axis=1))


def arcs(graph: Graph) -> Arcs:
    """The pairs of nodes of which the first may not come in a later stage."""
    forward_colors = {c for c, back in zip(graph.color, graph.backward, strict=True) if not back and c >= 0}
    orphan = [
        bool(back) and c not in forward_colors for c, back in zip(graph.color, graph.backward, strict=True)
    ]
    found = []
    for u, v in graph.edges.tolist():
        if not graph.backward[v]:
            found.append((u, v))
        elif graph.backward[u] and (orphan[u] or orphan[v]):
            found.append((v, u))
    return found
