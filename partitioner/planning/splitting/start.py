"""The graph from which operation splitting starts: the model, or replicas of it, as tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.planning.splitting.data_parallel import data_parallel as replicated
from partitioner.planning.splitting.dimension import Dimension
from partitioner.problem.fit import fit
from partitioner.problem.groups import colocated_groups
from partitioner.problem.tasks import Tasks, tasks_of
from partitioner.workload.constraints import NONE
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, Ints, NodeId
from partitioner.workload.resolved_constraints import demands_of
from partitioner.workload.topological import topological
from partitioner.workload.transfers import Transfers

Dimensions = Mapping[Any, Iterable[Dimension]]
Along = Mapping[NodeId, tuple[Dimension, ...]]
RULE = "must map ids of nodes to dimensions of distinct names"


def checked(graph: Graph, dimensions: Dimensions) -> Along:
    """Return the dimensions of each node.

    Raises
    ------
    WorkloadError
        If an id is not of the graph, or a value is not dimensions of distinct names.
    """
    if not isinstance(dimensions, Mapping):
        raise WorkloadError([Flaw("dimensions", "", shown(dimensions), RULE)])
    flaws = [
        Flaw("dimensions", "node", shown(node), "is not the id of a node of the graph")
        for node in dimensions
        if node not in graph.position
    ]
    along = {}
    for node, given in dimensions.items():
        if isinstance(given, str) or not isinstance(given, Iterable):
            flaws.append(Flaw("dimensions", shown(node), shown(given), RULE))
            continue
        along[node] = tuple(given)
        names = {d.name for d in along[node] if isinstance(d, Dimension)}
        if len(names) < len(along[node]):
            flaws.append(Flaw("dimensions", shown(node), shown(along[node]), RULE))
    if flaws:
        raise WorkloadError(flaws)
    return along


def start_of(
    graph: Graph, devices: Devices, along: Along, parallel: bool | None, gradient_cost: float | None
) -> tuple[Graph, Along]:
    """Return the graph to start from, in a topological order, and the dimensions of its nodes.

    Parameters are those of :func:`partitioner.split_operations`.
    """
    count = holders(graph, devices)
    if parallel is False or (parallel is None and count < 2):
        return in_order(graph, topological(graph.edges, len(graph))), along
    replicas = count or len(devices.names)
    result = replicated(
        graph, replicas, gradient_cost=_price(devices) if gradient_cost is None else gradient_cost
    )
    ids = result.ids[: replicas * len(graph)]
    return in_order(result, topological(result.edges, len(result))), {
        name: along[node] for name, node in zip(ids, graph.ids * replicas, strict=True) if node in along
    }


def holders(graph: Graph, devices: Devices) -> int:
    """Return how many devices may run, and can hold, the whole model."""
    fitted = fit(graph, devices, demands_of(graph, devices, NONE))
    total = fitted.size.sum()
    return sum(
        kind.count
        for kind, allowed in zip(devices.kinds, fitted.allowed, strict=True)
        if allowed.all() and total <= kind.memory_limit
    )


def _price(devices: Devices) -> float:
    """Return the cost of a unit of weights on the slowest link; 0 if no link is given."""
    return max((1 / kind.bandwidth for kind in devices.kinds if kind.count and kind.bandwidth), default=0.0)


def tasks_at(graph: Graph, devices: Devices, transfers: Transfers) -> Tasks:
    """Return the operations of a graph, in a topological order, as tasks for all devices."""
    fitted = fit(graph, devices, demands_of(graph, devices, NONE))
    groups, order = colocated_groups(fitted), topological(fitted.edges, len(fitted))
    return tasks_of(fitted, devices, groups, transfers, order, most=len(devices.names))


# A graph whose nodes are in a topological order.


def in_order(graph: Graph, order: Ints) -> Graph:
    """Return the graph with its nodes in a topological order, and its edges sorted by consumer."""
    edges = np.argsort(order)[graph.edges].reshape(-1, 2)
    by_consumer = np.argsort(edges[:, 1], kind="stable")
    nodes = order.tolist()
    return replace(
        graph,
        ids=tuple(graph.ids[i] for i in nodes),
        time=graph.time[:, order],
        allowed=graph.allowed[:, order],
        size=graph.size[order],
        backward=graph.backward[order],
        color=graph.color[order],
        layer=graph.layer[order],
        edges=edges[by_consumer],
        cost=graph.cost[by_consumer],
        names=tuple(graph.names[i] for i in nodes),
        extras=type(graph.extras)(top=graph.extras.top),
        parts=graph.parts[:, order],
        cache=graph.cache[order],
    )
