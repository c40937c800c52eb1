"""A second oracle for operators one by one: every placement and order, timed by plain Python.

A device runs its operators in the order given, each when its device is free and its inputs are there. A
tensor leaves when it is made and takes slope * cost + intercept to each device that reads it (Celeritas,
Section 4.2.1); transfers do not hinder one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

from partitioner import Devices, Graph, Transfers
from tests.oracle_paper import listed, placements


def paper_makespan(graph: Graph, devices: Devices, transfers: Transfers) -> float:
    """The least time of all placements and orders; infinity if no placement keeps the rules."""
    orders = topological_orders(graph)
    return min(
        (
            time_of(graph, devices, transfers, placed, order)
            for placed in placements(graph, listed(devices))
            for order in orders
        ),
        default=math.inf,
    )


def topological_orders(graph: Graph) -> list[tuple[int, ...]]:
    """All orders in which makers come before users."""
    edges = graph.edges.tolist()
    return [
        order
        for order in permutations(range(len(graph)))
        if all(order.index(u) < order.index(v) for u, v in edges)
    ]


def time_of(
    graph: Graph, devices: Devices, transfers: Transfers, placed: Sequence[int], order: Sequence[int]
) -> float:
    """When the last operator ends."""
    slope, intercept = transfers.times(devices)
    kinds = listed(devices)
    free = [0.0] * len(kinds)
    end: dict[int, float] = {}
    for v in order:
        kind, here = kinds[placed[v]], placed[v]
        start = free[here]
        for (u, w), cost in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True):
            if w == v:
                away = (
                    0.0 if placed[u] == here else slope[placed[u], here] * cost + intercept[placed[u], here]
                )
                start = max(start, end[u] + away)
        row = graph.time[graph.kinds.index(kind.times or kind.name)]
        end[v] = free[here] = start + float(row[v]) * kind.time_factor
    return max(end.values(), default=0.0)
