"""The time that a placement costs each device, by the definition (paper, Sections 3, 5.1 and 5.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.workload.graph import Floats, Graph, Ints

Slowness = Callable[[Ints, Ints], Floats]


def compute_times(placed: Placed) -> Floats:
    """Return the processing time of each device, forward and backward, shape (2, devices)."""
    total = np.zeros((2, len(placed.names)))
    np.add.at(total, (placed.graph.backward.astype(int), placed.device), kind_times(placed))
    return total * placed.time_factor


def kind_times(placed: Placed) -> Floats:
    """Return the time of each node on the kind of its device, without the kind's factor, shape (n,)."""
    graph = placed.graph
    return np.where(placed.row < 0, 0.0, graph.time[placed.row, np.arange(len(graph))])


def transfer_times(
    placed: Placed, slow: Slowness | None = None, by_edge: bool = False
) -> tuple[Floats, Floats]:
    """Return the transfer times into and out of each device, forward and backward, shape (2, devices) each.

    A transfer out belongs to the pass of the node that produces the tensor. A transfer in belongs to the
    backward pass if all consumers on the device do. Kinds that do not pay for transfers have none. If links
    differ, `slow` returns the slowdown of the link between two devices: a transfer in is slowed down by the
    link to the producer, a transfer out by the slowest link to a consumer. With `by_edge` every edge carries
    a tensor of its own. Alternatives add their times to every edge between two devices.
    """
    graph, device, count = placed.graph, placed.device, len(placed.names)
    into, out = np.zeros((2, count)), np.zeros((2, count))
    tensor, cost = (np.arange(len(graph.edges)), graph.cost) if by_edge else tensors(graph)
    maker, user = graph.edges[:, 0], graph.edges[:, 1]
    cut = device[maker] != device[user]
    tensor, maker, user = tensor[cut], maker[cut], user[cut]
    slowdown = np.ones(len(tensor)) if slow is None else slow(device[maker], device[user])
    reading, sending = placed.surcharge[:, cut] * slowdown
    np.add.at(into, (graph.backward[user].astype(int), device[user]), reading)
    np.add.at(out, (graph.backward[maker].astype(int), device[maker]), sending)
    sent, first, which = np.unique(tensor, return_index=True, return_inverse=True)
    slowest = np.zeros(len(sent))
    np.maximum.at(slowest, which, slowdown)
    source = maker[first]
    np.add.at(out, (graph.backward[source].astype(int), device[source]), cost[sent] * slowest)
    arrival, first, which = np.unique(tensor * count + device[user], return_index=True, return_inverse=True)
    only_backward = np.ones(len(arrival), dtype=bool)
    np.logical_and.at(only_backward, which, graph.backward[user])
    np.add.at(into, (only_backward.astype(int), arrival % count), cost[arrival // count] * slowdown[first])
    return into * placed.transfer_factor, out * placed.transfer_factor


def tensors(graph: Graph) -> tuple[Ints, Floats]:
    """Return the number of the tensor that each edge carries, and the tensors' costs (paper, Appendix E.1).

    If all edges out of a node have the same cost, they carry the same tensor; otherwise each carries its own.
    """
    source = graph.edges[:, 0]
    low = np.full(len(graph), np.inf)
    high = np.zeros(len(graph))
    np.minimum.at(low, source, graph.cost)
    np.maximum.at(high, source, graph.cost)
    tensor = np.where((low < high)[source], len(graph) + np.arange(len(source)), source)
    cost = np.zeros(len(graph) + len(source))
    cost[tensor] = graph.cost
    return tensor.astype(np.int64), cost


def loads_of(communication: str, compute: Floats, into: Floats, out: Floats) -> Floats:
    """Return the loads of devices under a model of communication (paper, Appendix H.1)."""
    if communication == "sequential":
        return compute + into + out
    if communication == "overlapped":
        return np.asarray(np.maximum(compute, into + out))
    return np.asarray(np.maximum(compute, np.maximum(into, out)))
