"""The best makespan of a small workload: all placements, all orders, each timed by definition.

Shares no code with the methods; the time of an order is the evaluator's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np

from partitioner import Devices, Graph, Transfers, evaluate


def least_makespan(graph: Graph, devices: Devices, transfers: Transfers) -> float | None:
    """None if no placement obeys the rules."""
    orders = list(topological_orders(graph))
    least = None
    for names in product(devices.names, repeat=len(graph)):
        placement = dict(zip(graph.ids, names, strict=True))
        if not evaluate(graph, devices, placement, "makespan", transfers=transfers).feasible:
            continue
        for order in _different(orders, names):
            ids = [graph.ids[v] for v in order]
            found = evaluate(
                graph, devices, placement, "makespan", transfers=transfers, execution_order=ids
            ).value
            least = found if least is None else min(least, found)
    return least


def topological_orders(graph: Graph) -> Iterator[tuple[int, ...]]:
    """All of them, by trying every permutation."""
    edges = graph.edges.tolist()
    for order in permutations(range(len(graph))):
        place = np.argsort(order)
        if all(place[u] < place[v] for u, v in edges):
            yield order


def _different(orders: Sequence[tuple[int, ...]], names: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """One order for each sequence of the devices."""
    seen = set()
    for order in orders:
        key = tuple(tuple(v for v in order if names[v] == name) for name in sorted(set(names)))
        if key not in seen:
            seen.add(key)
            yield order
