"""The problem of latency: the nodes of the graph without contraction, in a topological order."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.measure import Measure
from partitioner.problem.nets import build_nets, no_nets
from partitioner.problem.precedence import distinct
from partitioner.problem.problem import Problem
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph


def flow_of(
    graph: Graph, devices: Devices, group: Ints, subgraphs: int, order: Ints, tensors: bool = True
) -> Problem:
    """Return the problem of the nodes in a topological order, without contraction.

    Parameters
    ----------
    graph, devices
        A checked workload.
    group
        Shape (N,): nodes of a group must share a device.
    subgraphs
        How many subgraphs of each pass a device that pays for transfers may hold.
    order
        Shape (N,): positions of the nodes, producers before consumers.
    tensors
        Whether to build the nets; otherwise the problem has none.
    """
    member = np.argsort(order)
    count = len(order)
    edges = distinct(member[graph.edges])
    size = graph.size[order]
    allowed = np.array([_allowed(graph, devices, k)[order] for k in range(len(devices.kinds))])
    return Problem(
        time=np.array([_times(graph, devices, k)[:, order] for k in range(len(devices.kinds))]),
        size=size,
        allowed=allowed,
        successors=rows_of(edges[:, 0], edges[:, 1], count),
        predecessors=rows_of(edges[:, 1], edges[:, 0], count),
        nets=build_nets(graph, member, count, "sources") if tensors else no_nets(count),
        member=member,
        count=np.array([min(kind.count, count) for kind in devices.kinds], dtype=np.int64),
        memory=np.array([kind.memory_limit for kind in devices.kinds]),
        transfer_factor=np.array([kind.effective_transfer_factor for kind in devices.kinds]),
        communication=devices.communication,
        relaxed_size=size,
        relaxed_allowed=allowed,
        measure=Measure.ONE_SAMPLE,
        split="convex",
        ordered=False,
        backward=graph.backward[order],
        group=np.unique(group[order], return_inverse=True)[1],
        subgraphs=subgraphs,
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
