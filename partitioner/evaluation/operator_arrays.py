"""The operators of a placement, and the transfers between their devices, as plain lists."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from partitioner.evaluation.costs import tensors
from partitioner.evaluation.placed import Placed
from partitioner.workload.graph import Floats, Graph, Ints
from partitioner.workload.transfers import Transfers


@dataclass(frozen=True, eq=False)
class OperatorArrays:
    """`n` operators, numbered in a topological order, and their edges, numbered by producer.

    A transfer brings one tensor to one device; its number follows from the first of its edges. If the device
    is that of the producer, the transfer takes no time.

    Parameters
    ----------
    node
        Shape (n,): position of each operator's node in the graph.
    device, length
        For each operator its device, and its time there; 0 if the graph has no times for the kind.
    missing
        For each operator the number of edges into it.
    first_edge, first_transfer
        For each operator the first edge, and the first transfer, out of it; then the number of all.
    reader, transfer, along
        For each edge its consumer, its transfer, and the time of the transfer.
    maker, target, duration
        For each transfer the operator and the device at its ends, and its time.
    """

    node: Ints
    device: list[int]
    length: list[float]
    missing: list[int]
    first_edge: list[int]
    first_transfer: list[int]
    reader: list[int]
    transfer: list[int]
    along: list[float]
    maker: Ints
    target: list[int]
    duration: list[float]


def arrays_of(placed: Placed, transfers: Transfers, order: Ints) -> OperatorArrays:
    """Return the operators of a placement; `order` has the positions of the nodes, producers first."""
    n, device = len(order), placed.device[order]
    tensor, cost = tensors(placed.graph)
    ends = np.argsort(order)[placed.graph.edges]
    by_maker = np.argsort(ends[:, 0], kind="stable")
    (source, reader), tensor = ends[by_maker].T, tensor[by_maker]
    first, transfer = _numbered(tensor * len(placed.names) + device[reader])
    slope, intercept = _lines(placed, transfers)
    maker, target = source[first], device[reader[first]]
    duration = slope[device[maker], target] * cost[tensor[first]] + intercept[device[maker], target]
    return OperatorArrays(
        node=order,
        device=device.tolist(),
        length=times_of(placed)[order].tolist(),
        missing=np.bincount(reader, minlength=n).tolist(),
        first_edge=np.searchsorted(source, np.arange(n + 1)).tolist(),
        first_transfer=np.searchsorted(maker, np.arange(n + 1)).tolist(),
        reader=reader.tolist(),
        transfer=transfer.tolist(),
        along=duration[transfer].tolist(),
        maker=maker,
        target=target.tolist(),
        duration=duration.tolist(),
    )


def topological_order(graph: Graph) -> Ints:
    """Return the positions of the nodes such that the lowest one that is ready comes next, shape (n,)."""
    edges = graph.edges[np.argsort(graph.edges[:, 0], kind="stable")]
    first = np.searchsorted(edges[:, 0], np.arange(len(graph) + 1)).tolist()
    reader, missing = edges[:, 1].tolist(), np.bincount(edges[:, 1], minlength=len(graph)).tolist()
    ready, order = [v for v, count in enumerate(missing) if not count], []
    while ready:
        order.append(u := heappop(ready))
        for v in reader[first[u] : first[u + 1]]:
            missing[v] -= 1
            if not missing[v]:
                heappush(ready, v)
    return np.array(order, dtype=np.int64)


def times_of(placed: Placed) -> Floats:
    """Return the time of each node on its device, shape (n,); 0 if the graph has no times for the kind."""
    graph = placed.graph
    time = graph.time[placed.row, np.arange(len(graph))] * placed.time_factor[placed.device]
    return np.where(placed.row >= 0, time, 0.0)


def _numbered(key: Ints) -> tuple[Ints, Ints]:
    """Return where each distinct key occurs first, in that order, and the number of every key."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))
    return np.sort(first), number[which]


def _lines(placed: Placed, transfers: Transfers) -> tuple[Floats, Floats]:
    """Return slope and intercept between all devices that are named; 0 for those that do not exist."""
    slope, intercept = transfers.times(placed.devices)
    beyond = (0, len(placed.names) - len(slope))
    return np.pad(slope, beyond), np.pad(intercept, beyond)
