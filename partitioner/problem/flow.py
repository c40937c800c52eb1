"""The problems of latency and makespans: the nodes without contraction, in a topological order."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.measure import Measure
from partitioner.problem.nets import build_nets, no_nets
from partitioner.problem.precedence import distinct
from partitioner.problem.variants import NodesProblem
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph


def flow_of(
    graph: Graph, devices: Devices, group: Ints, order: Ints, measure: Measure, split: str
) -> NodesProblem:
    """Return the problem of the nodes in a topological order, without contraction.

    Parameters
    ----------
    graph, devices
        A checked workload.
    group
        Shape (N,): nodes of a group must share a device.
    order
        Shape (N,): positions of the nodes, producers before consumers.
    measure, split
        What is asked for; problems of makespans have no nets.
    """
    member = np.argsort(order)
    count = len(order)
    edges = distinct(member[graph.edges])
    size, tensors = graph.size[order], measure is not Measure.LAST_OPERATOR
    allowed = np.array([_allowed(graph, devices, k)[order] for k in range(len(devices.kinds))])
    return NodesProblem(
        time=np.array([_times(graph, devices, k)[:, order] for k in range(len(devices.kinds))]),
        size=size,
        allowed=allowed,
        successors=rows_of(edges[:, 0], edges[:, 1], count),
        predecessors=rows_of(edges[:, 1], edges[:, 0], count),
        nets=build_nets(graph, member, count, "sources") if tensors else no_nets(count),
        member=member,
        count=np.array([min(kind.count, count) for kind in devices.kinds], dtype=np.int64),
        memory=np.array([kind.memory_limit for kind in devices.kinds]),
        transfer_factor=np.array(devices.transfer_factors),
        communication=devices.communication,
        relaxed_size=size,
        relaxed_allowed=allowed,
        measure=measure,
        split=split,
        ordered=False,
        pipeline=None,
        group=np.unique(group[order], return_inverse=True)[1],
    )


def _allowed(graph: Graph, devices: Devices, k: int) -> Bools:
    kind = devices.kinds[k]
    if not kind.count or kind.name not in graph.kinds:
        return np.zeros(len(graph), dtype=bool)
    return np.asarray(graph.allowed[graph.kinds.index(kind.name)])


def _times(graph: Graph, devices: Devices, k: int) -> Floats:
    """Return the time of each node in its pass, shape (2, N); 0 in the other pass and if it may not run."""
    time, may = np.zeros((2, len(graph))), _allowed(graph, devices, k)
    if may.any():
        row = graph.time[graph.kinds.index(devices.kinds[k].name)]
        time[graph.backward.astype(int), np.arange(len(graph))] = np.where(may, row, 0.0)
    return time
