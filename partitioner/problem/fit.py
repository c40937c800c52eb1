"""The graph adapted to given devices: a row of times for each kind, and constraints applied to nodes."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner.workload.alternatives import Alternative
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.resolved_constraints import Demands
from partitioner.workload.transfers import with_latency

COUNTED_ONCE = ("gradients", "optimizer")  # parts of the memory that do not depend on a schedule


def fit(
    graph: Graph, devices: Devices, demands: Demands, by_schedule: bool = False, copied: bool = False
) -> Graph:
    """Return the graph with one row of times for each kind of `devices`, in their order.

    Parameters
    ----------
    graph, devices
        A checked workload.
    demands
        The constraints by node; pins and prohibitions restrict `allowed`. Where no stage may be on several
        devices, alternatives that run on several are left out.
    by_schedule
        Whether memory depends on a schedule. If so, `size` includes gradients and the state of the
        optimizer; otherwise it includes every part of the memory once.
    copied
        Whether stages may have copies; then `size` is without the memory that these divide.

    Returns
    -------
    Graph
        The graph, with the same nodes and edges. Kinds for which it has no times may run no node.
    """
    time, allowed = np.zeros((2, len(devices.kinds), len(graph)))
    for k, kind in enumerate(devices.kinds):
        if kind.row in graph.kinds:
            row = graph.kinds.index(kind.row)
            time[k] = graph.time[row] * kind.time_factor
            allowed[k] = graph.allowed[row] & demands.may[k]
    counted = COUNTED_ONCE if by_schedule else MEMORY_PARTS

    def fitted(way: Alternative) -> Alternative:
        times = {
            kind.name: way.times[kind.row] * kind.time_factor if kind.row in way.times else 0.0
            for kind in devices.kinds
        }
        return replace(way, times=times, size=way.size + sum(getattr(way, part) for part in counted))

    size = graph.size + graph.parts[[MEMORY_PARTS.index(part) for part in counted]].sum(axis=0)
    ways = graph.alternatives.kept(lambda way: way.degree == 1 or not demands.no_replicas)
    return replace(
        graph,
        kinds=tuple(kind.name for kind in devices.kinds),
        time=time,
        allowed=allowed > 0,
        cost=with_latency(graph, devices).cost,
        size=size - graph.divided if copied else size,
        alternatives=ways.changed(fitted),
    )


def companions(demands: Demands) -> Ints:
    """Return classes of nodes that constraints keep on one device, shape (n,); -1 for nodes in no class."""
    bonds: nx.Graph[object] = nx.Graph()
    pinned = np.flatnonzero(demands.device >= 0).tolist()
    bonds.add_edges_from((i, ("device", int(demands.device[i]))) for i in pinned)
    for number, nodes in enumerate(demands.together):
        bonds.add_edges_from((i, ("together", number)) for i in nodes.tolist())
    label = np.full(len(demands.device), -1, dtype=np.int64)
    for number, component in enumerate(nx.connected_components(bonds)):
        label[[i for i in component if isinstance(i, int)]] = number
    return label
