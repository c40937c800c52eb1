"""Operators as tasks: the arrays of a graph and its devices that list scheduling needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.nets import has_one_output
from partitioner.problem.useful_devices import first_of_kinds, useful_devices
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph
from partitioner.workload.transfers import Transfers


@dataclass(frozen=True, eq=False)
class Tasks:
    """`n` operators, numbered in a topological order, and `D` devices, numbered kind by kind.

    Parameters
    ----------
    node
        Shape (n,): position of each task's node in the graph.
    time
        Shape (D, n): time on each device, infinity where a task may not run.
    size
        Shape (n,): memory, which counts from the moment when the task is placed.
    group
        Shape (n,): the group of each task, numbered from 0; tasks of a group must share a device.
    before, before_tensor
        For each task the producers of its inputs in the order of the edges, and for each of these the
        tensor that it reads, shape of `before.items`. A graph has no two edges with the same ends and tensor.
    after, after_tensor
        For each task its consumers in the order of the edges, and for each of these the tensor that it reads.
    cost
        Shape (T,): the cost of each tensor, in the unit of the edges' costs.
    limit
        Shape (D,): memory of each device, infinity without a limit.
    kind, index
        Shape (D,): kind of each device, and its index among the devices of the kind.
    slope, intercept
        Shape (D, D): a transfer takes slope * cost + intercept.
    contention
        See :class:`partitioner.Transfers`.
    name
        The name of each device, for notes; may be empty if there are no notes.
    """

    node: Ints
    time: Floats
    size: Floats
    group: Ints
    before: Rows
    before_tensor: Ints
    after: Rows
    after_tensor: Ints
    cost: Floats
    limit: Floats
    kind: Ints
    index: Ints
    slope: Floats
    intercept: Floats
    contention: bool
    name: tuple[str, ...] = ()

    @cached_property
    def links(self) -> tuple[Floats, Ints]:
        """The slopes and intercepts of links between different devices, shape (k, 2), and their counts."""
        apart = ~np.eye(len(self.limit), dtype=bool)
        pairs = np.column_stack((self.slope[apart], self.intercept[apart]))
        lines, counts = np.unique(pairs.view(np.complex128), return_counts=True)  # in the order of the pairs
        return lines.view(np.float64).reshape(-1, 2), counts

    @property
    def n(self) -> int:
        """How many tasks there are."""
        return len(self.size)

    @cached_property
    def group_size(self) -> Floats:
        """Shape (groups,): total memory of the tasks of a group."""
        return np.bincount(self.group, self.size).astype(np.float64)

    @cached_property
    def group_allowed(self) -> Bools:
        """Shape (D, groups): whether all tasks of the group may run on the device."""
        refused = [np.bincount(self.group, ~np.isfinite(row)) for row in self.time]
        return np.asarray(np.array(refused).reshape(len(self.limit), -1) == 0)

    def hold(self, device: Ints) -> bool:
        """Whether no device exceeds its memory, without tolerance, if task v is on ``device[v]``."""
        return bool((np.bincount(device, self.size, len(self.limit)) <= self.limit).all())


def tasks_of(
    graph: Graph,
    devices: Devices,
    group: Ints,
    transfers: Transfers,
    order: Ints,
    most: int | None = None,
) -> Tasks:
    """Return the nodes as tasks in the given topological order.

    Parameters
    ----------
    graph, devices
        A workload fitted to the devices.
    group
        Shape (N,): nodes of a group share a device.
    order
        Shape (N,): positions of the nodes, producers before consumers.
    most
        The largest number of devices that are used, see :func:`useful_devices`; None for the number of nodes.
    """
    slope, intercept = transfers.times(devices)
    chosen = useful_devices(devices, transfers, len(order) if most is None else most)
    kind = np.repeat(np.arange(len(devices.kinds)), [kind.count for kind in devices.kinds])[chosen]
    slope, intercept = slope[np.ix_(chosen, chosen)], intercept[np.ix_(chosen, chosen)]
    edges, tensor, cost = _tensors(graph, np.argsort(order))
    time = np.where(graph.allowed, graph.time, np.inf)[kind][:, order]
    by_consumer = np.argsort(edges[:, 1], kind="stable")
    by_producer = np.argsort(edges[:, 0], kind="stable")
    return Tasks(
        node=order,
        time=np.ascontiguousarray(time),
        size=graph.size[order],
        group=np.unique(group[order], return_inverse=True)[1].astype(np.int64),
        before=rows_of(edges[:, 1], edges[:, 0], len(order)),
        before_tensor=tensor[by_consumer],
        after=rows_of(edges[:, 0], edges[:, 1], len(order)),
        after_tensor=tensor[by_producer],
        cost=cost,
        limit=np.array([k.memory_limit for k in devices.kinds])[kind],
        kind=kind,
        index=chosen - first_of_kinds(devices)[kind],
        slope=np.ascontiguousarray(slope),
        intercept=np.ascontiguousarray(intercept),
        contention=transfers.contention,
        name=tuple(devices.names[d] for d in chosen.tolist()),
    )


def _tensors(graph: Graph, number: Ints) -> tuple[Ints, Ints, Floats]:
    """Return the edges between tasks in their order, the tensor of each, and the costs of the tensors."""
    ends = number[graph.edges].reshape(-1, 2)
    single = has_one_output(graph)[graph.edges[:, 0]]
    key = np.where(single, ends[:, 0], len(graph) + np.arange(len(ends)))
    _, first, tensor = np.unique(key, return_index=True, return_inverse=True)
    return ends, tensor.astype(np.int64), np.asarray(graph.cost[first], dtype=np.float64)
