"""The least time that any call on a graph takes: a time limit below it is refused before any work."""

from __future__ import annotations

import math

from partitioner.base.errors import OptionError
from partitioner.problem.measure import Measure
from partitioner.workload.graph import Graph

GRACE = 1.0  # seconds by which a run may exceed its limit
# Seconds that each node and each edge takes to contract, to place first and to evaluate: rough fits, up to a
# second off for 100,000 nodes. What a method does beyond that ends with the limit.
COSTS = {Measure.ONE_SAMPLE: (28e-6, 3e-6), Measure.LAST_OPERATOR: (24e-6, 2e-6)}
OTHERS = (22e-6, 2.5e-6)


def least_time_limit(measure: Measure, nodes: int, edges: int) -> float:
    """Return the least time limit in seconds that a run on a graph of this size can keep, within `GRACE`.

    Examples
    --------
    >>> least_time_limit(Measure.LARGEST_LOAD, 20_000, 60_000)
    0.0
    >>> least_time_limit(Measure.LARGEST_LOAD, 200_000, 600_000)
    4.9
    """
    node, edge = COSTS.get(measure, OTHERS)
    return max(0.0, math.ceil(10 * (nodes * node + edges * edge - GRACE)) / 10)


def check_time_limit(graph: Graph, measure: Measure, time_limit: object) -> None:
    """Refuse a time limit within which there can be no plan.

    Raises
    ------
    OptionError
        If the limit is a number below :func:`least_time_limit`.
    """
    if not isinstance(time_limit, int | float) or isinstance(time_limit, bool) or time_limit <= 0:
        return
    nodes, edges = len(graph), len(graph.edges)
    least = least_time_limit(measure, nodes, edges)
    if time_limit < least:
        size = f"{nodes:,} nodes and {edges:,} edges"
        raise OptionError(
            f"time_limit = {time_limit:g}: must be at least {least:g} s for a graph of {size}, since "
            "contracting and evaluating it takes that long"
        )
