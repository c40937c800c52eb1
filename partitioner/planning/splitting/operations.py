"""The search for operations to split, with their dimensions and numbers of parts (OS-DPOS of FastT)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from partitioner.base.argument_types import require_type
from partitioner.planning.solve import solve
from partitioner.planning.splitting.ranges import check_ranges
from partitioner.planning.splitting.rewritten import Splitter
from partitioner.planning.splitting.start import Dimensions, checked, start_of, tasks_at
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.pass_order import with_pass_order
from partitioner.workload.transfers import DEFAULT_TRANSFERS, Transfers
from partitioner.workload.workload import Workload


@dataclass(frozen=True)
class SplitPlan:
    """The result of :func:`split_operations`.

    Parameters
    ----------
    graph
        The graph with its operations split, in a topological order.
    plan
        A plan of it.
    splits
        For each split operation its id, the name of the dimension and the number of parts, in the order in
        which they were decided.
    unsplit
        The makespan by DPOS of the graph that the search started from: the model, or its replicas.
    trials
        How many splits were tried.
    """

    graph: Graph
    plan: Plan
    splits: tuple[tuple[NodeId, str, int], ...]
    unsplit: float
    trials: int


def split_operations(
    graph: Graph,
    devices: Devices,
    dimensions: Dimensions,
    *,
    transfers: Transfers | None = None,
    data_parallel: bool | None = None,
    gradient_cost: float | None = None,
    largest_split: int | None = None,
    split_time: float = 0.0,
    concatenate_time: float = 0.0,
    time_limit: float | None = None,
    reserve_memory: bool = True,
) -> SplitPlan:
    """Split operations on the critical path into parts that run in parallel (OS-DPOS of FastT).

    The search starts from the plan of method ``dpos``. Along the critical path of its schedule, the longest
    operation first, every dimension and number of parts is tried; the best stays if the makespan falls, else
    the search ends.

    Parameters
    ----------
    graph, devices
        The model and what runs it.
    dimensions
        For the id of an operation the dimensions along which it may be split; operations that are left out
        stay whole. Replicas have those of their operation.
    transfers
        How tensors travel; None: as :class:`partitioner.Transfers` says by default.
    data_parallel
        Start from a replica of the model for each device (:func:`partitioner.data_parallel`)? None: if the
        whole model fits one device; then there are as many replicas as devices.
    gradient_cost
        For replicas, see :func:`partitioner.data_parallel`; None: 1 over the smallest bandwidth of the kinds
        that have one, else 0.
    largest_split
        The largest number of parts, 2 to 256; None: the number of devices.
    split_time, concatenate_time
        What it takes to divide a tensor, and to join one, in the unit of the graph's times.
    time_limit
        Seconds after which to take the best so far.
    reserve_memory
        See :class:`partitioner.Placing`.

    Returns
    -------
    SplitPlan
        Not slower than the start.

    Raises
    ------
    WorkloadError
        If the graph, the devices, or `dimensions` break a rule.
    OptionError
        If an option is out of its range.
    NoPlanFound, InfeasibleError
        As :func:`partitioner.solve` with method ``dpos``.

    Notes
    -----
    Each input of a split operation goes through a split node and its outputs through a concatenate node.
    Times are divided by the number of parts; what divides otherwise is the :class:`partitioner.Dimension`'s
    to say. Where a graph tells parameters from other memory, gradients and the state of the optimizer count
    as parameters and all else is divided; where it has only `size`, that is taken for parameters. Parts,
    split and concatenate nodes are not bound to the colour class of the operation.

    Examples
    --------
    >>> from partitioner import Dimension
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 8.0, 1.0]}, [(0, 1), (1, 2)], 1.0)
    >>> along = {1: [Dimension("batch")]}
    >>> found = split_operations(graph, Devices.accelerated(2), along, data_parallel=False)
    >>> found.splits, found.unsplit, found.plan.value
    (((1, 'batch', 2),), 10.0, 7.0)
    """
    from partitioner.methods.placers.os_dpos import os_dpos

    started, transfers = time.perf_counter(), DEFAULT_TRANSFERS if transfers is None else transfers
    require_type("graph", graph, Graph)
    require_type("transfers", transfers, Transfers)
    Workload(graph, devices)
    most = len(devices.names) if largest_split is None else largest_split
    check_ranges(
        split_time, concatenate_time, gradient_cost, time_limit, largest_split, data_parallel, reserve_memory
    )
    graph = with_pass_order(graph)
    start, along = start_of(graph, devices, checked(graph, dimensions), data_parallel, gradient_cost)
    splitter = Splitter(start, devices, split_time, concatenate_time)
    search = os_dpos(
        tasks_at(start, devices, transfers),
        lambda i: splitter.shares(i, along.get(start.ids[i], ()), most),
        reserve_memory,
        lambda: time_limit is not None and time.perf_counter() >= started + time_limit,
    )
    result = splitter.graph_of(search.draft, search.splits) if search and search.splits else start
    plan = solve(
        result, devices, "makespan", method="dpos", transfers=transfers, reserve_memory=reserve_memory
    )
    if search is None:  # the memory is full too early for the placer's own rules
        return SplitPlan(result, plan, (), plan.value, 0)
    splits = tuple((start.ids[i], d.name, n) for i, (d, n) in search.splits.items())
    return SplitPlan(result, plan, splits, search.unsplit, search.trials)
