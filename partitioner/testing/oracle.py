"""The least value of small workloads, found by trying every solution, without code of the methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from partitioner.evaluation.shape import SHAPES
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.planning.evaluate import evaluated
from partitioner.planning.objectives import Objective
from partitioner.schedule.simulation import simulate
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph

NEEDS_ORDER = "execution_order"


def least_value(
    graph: Graph, devices: Devices, objective: Objective, split: str, terms: Mapping[str, Any]
) -> float | None:
    """Return the least value that the evaluator finds for any solution; None if all of them break a rule.

    Parameters
    ----------
    graph, devices
        A small workload: every placement is tried, and for makespans every order of the operators.
    objective, split
        The objective, and the name of the split.
    terms
        Further options of the evaluation, such as `microbatches`.

    Examples
    --------
    >>> from partitioner.planning.objectives import THROUGHPUT
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> least_value(graph, Devices.accelerated(2), THROUGHPUT, "chain", {})
    3.5
    """
    orders = list(orders_of(graph)) if NEEDS_ORDER in objective.terms else [None]
    under = Terms(split=split, **terms)
    values = (
        value_of(graph, devices, objective, Solution(placement, execution_order=order), under)
        for placement in placements_of(graph, devices)
        for order in orders
    )
    return min((value for value in values if math.isfinite(value)), default=None)


def value_of(graph: Graph, devices: Devices, objective: Objective, solution: Solution, terms: Terms) -> float:
    """Return the value of a solution, simulated if it has a schedule; infinity if it breaks a rule."""
    found = evaluated(objective, graph, devices, solution, terms)
    free = "subgraphs" in objective.terms  # the evaluator's rules on subgraphs include the shape
    split = terms.split or SHAPES[-1]
    shaped = free or SHAPES.index(found.shape.name) <= SHAPES.index(split)
    if not (found.feasible and shaped):
        return math.inf
    if "schedule" not in objective.needs:
        return found.value
    order = solution.order or found.shape.order
    return simulate(graph, devices, solution, terms.schedule, terms.microbatches, order=order).makespan


def placements_of(graph: Graph, devices: Devices) -> Iterator[dict[Any, str]]:
    """Yield every placement that keeps colour classes together, but not those that permute equal devices."""
    colours = graph.color.tolist()
    groups: dict[tuple[str, int], list[Any]] = {}
    for i, node in enumerate(graph.ids):
        groups.setdefault(("colour", colours[i]) if colours[i] >= 0 else ("node", i), []).append(node)
    for chosen in _assignments(len(groups), devices, ()):
        yield {node: name for name, nodes in zip(chosen, groups.values(), strict=True) for node in nodes}


def _assignments(left: int, devices: Devices, chosen: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield all choices of devices for the remaining groups; of a kind's unused devices only the first."""
    if not left:
        yield chosen
        return
    for position, kind in enumerate(devices.kinds):
        used = len({name for name in chosen if (devices.kind_of(name) or (-1, 0))[0] == position})
        for index in range(min(used + 1, kind.count)):
            yield from _assignments(left - 1, devices, (*chosen, kind.device(index)))


def orders_of(graph: Graph) -> Iterator[tuple[Any, ...]]:
    """Yield every order of the nodes in which producers come before consumers."""
    before: dict[int, set[int]] = {i: set() for i in range(len(graph))}
    for source, target in graph.edges.tolist():
        before[target].add(source)
    for order in _orders(before, ()):
        yield tuple(graph.ids[i] for i in order)


def _orders(before: Mapping[int, set[int]], done: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if len(done) == len(before):
        yield tuple(done)
    for node in before.keys() - set(done):
        if before[node] <= set(done):
            yield from _orders(before, (*done, node))
