"""The graph as the devices at hand would run it, with what constraints demand of nodes."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.resolved_constraints import Demands


def fit(graph: Graph, devices: Devices, demands: Demands, by_schedule: bool = False) -> Graph:
    """A graph with one row of times for each kind of device, in their order.

    Parameters
    ----------
    graph, devices
        A checked workload.
    demands
        Pins and prohibitions narrow `allowed`.
    by_schedule
        Whether memory depends on a schedule. Then gradients and the state of the optimizer count with
        `size`; else every part does, once.

    Returns
    -------
    Graph
        Of the same nodes and edges. Kinds whose times the graph does not have may run nothing.
    """
    time, allowed = np.zeros((2, len(devices.kinds), len(graph)))
    for k, kind in enumerate(devices.kinds):
        if kind.row in graph.kinds:
            row = graph.kinds.index(kind.row)
            time[k] = graph.time[row] * kind.time_factor
            allowed[k] = graph.allowed[row] & demands.may[k]
    counted = graph.parts[1:3] if by_schedule else graph.parts
    return replace(
        graph,
        kinds=tuple(kind.name for kind in devices.kinds),
        time=time,
        allowed=allowed > 0,
        size=graph.size + counted.sum(axis=0),
    )


def companions(demands: Demands) -> Ints:
    """Shape (n,): classes of nodes that constraints keep on one device, -1 for a node on its own."""
    bonds: nx.Graph[object] = nx.Graph()
    bonds.add_edges_from((i, ("device", d)) for i, d in enumerate(demands.device.tolist()) if d >= 0)
    for number, nodes in enumerate(demands.together):
        bonds.add_edges_from((i, ("together", number)) for i in nodes.tolist())
    label = np.full(len(demands.device), -1, dtype=np.int64)
    for number, component in enumerate(nx.connected_components(bonds)):
        label[[i for i in component if isinstance(i, int)]] = number
    return label
