"""The search for operations to split, with their dimensions and numbers of parts (OS-DPOS of FastT)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError, shown
from partitioner.methods.placers.dpos_draft import CONCATENATE, PART, SPLIT, Draft, Share
from partitioner.planning.solve import solve
from partitioner.planning.splitting.dimension import Dimension, names_of
from partitioner.planning.splitting.start import Dimensions, checked, start_of, tasks_at
from partitioner.results.plan import Plan
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.device_validation import LARGEST
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph, Ints, NodeId
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


# The ranges of the options of operation splitting.

MOST_PARTS = 256


def check_ranges(
    split_time: object,
    concatenate_time: object,
    gradient_cost: object,
    time_limit: object,
    largest_split: object,
    data_parallel: object,
    reserve_memory: object,
) -> None:
    """Check that the options of :func:`partitioner.split_operations` are in their ranges.

    Raises
    ------
    OptionError
        If one is out of its range.
    """
    amount, least = (
        f"a number from 0 to {LARGEST:g}",
        f"an integer of at least 2 and at most {MOST_PARTS:,}, or None",
    )
    rules = (
        ("split_time", split_time, amount, _is_amount(split_time)),
        ("concatenate_time", concatenate_time, amount, _is_amount(concatenate_time)),
        ("gradient_cost", gradient_cost, amount, gradient_cost is None or _is_amount(gradient_cost)),
        ("time_limit", time_limit, f"{amount}, or None", time_limit is None or _is_amount(time_limit)),
        ("largest_split", largest_split, least, largest_split is None or _is_split(largest_split)),
        (
            "data_parallel",
            data_parallel,
            "True, False or None",
            data_parallel is None or isinstance(data_parallel, bool),
        ),
        ("reserve_memory", reserve_memory, "True or False", isinstance(reserve_memory, bool)),
    )
    for name, value, rule, holds in rules:
        if not holds:
            raise OptionError(f"{name} = {shown(value)}: must be {rule}")


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_split(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= MOST_PARTS


# The graph with some operations split: the share of each part, and the new nodes and edges.

ROWS = {name: i for i, name in enumerate(MEMORY_PARTS)}
COPIED = [ROWS[name] for name in ("parameters", "gradients", "optimizer")]
Choice = tuple[Dimension, int]
Splits = Mapping[int, Choice]


@dataclass(frozen=True, eq=False)
class Splitter:
    """Computes the shares of the parts of an operation.

    Parameters
    ----------
    graph, devices
        The graph to split operations of, and what runs it.
    split_time, concatenate_time
        What these nodes take, in the unit of the graph's times, on every kind.
    """

    graph: Graph
    devices: Devices
    split_time: float
    concatenate_time: float

    @cached_property
    def has_parts(self) -> bool:
        """Whether the graph distinguishes parameters from other memory."""
        return bool(self.graph.parts.any())

    def shares(self, node: int, dimensions: Iterable[Dimension], most: int) -> dict[Choice, Share]:
        """Return the shares of the parts of a node, for every dimension and number of parts up to `most`."""
        choices = [(d, n) for d in dimensions for n in range(2, most + 1)]
        if not choices:
            return {}
        count = np.array([n for _, n in choices])
        divided = np.array([d.divides_parameters for d, _ in choices])
        size, parts = self.memory(np.full(len(choices), node), divided, count)
        held, time = (size + parts.sum(axis=0)).tolist(), self._times(node, count)
        return {
            (d, n): Share(n, time[i], held[i], d.divides_input, d.divides_output)
            for i, (d, n) in enumerate(choices)
        }

    def share(self, node: int, dimension: Dimension, count: int) -> Share:
        """Return the share of each of `count` parts of a node."""
        return self.shares(node, [dimension], count)[dimension, count]

    def _times(self, node: int, count: Ints) -> Floats:
        """Return the times of split node, part and concatenate node on each device, shape (k, D, 3)."""
        rows = []
        for kind in self.devices.kinds:
            times = np.full((len(count), 3), np.inf)
            if kind.row in self.graph.kinds:
                row = self.graph.kinds.index(kind.row)
                own = self.graph.time[row, node] / count if self.graph.allowed[row, node] else np.inf
                times[:, 0], times[:, 1], times[:, 2] = self.split_time, own, self.concatenate_time
            rows += [times * kind.time_factor] * kind.count
        return np.ascontiguousarray(np.stack(rows, axis=1))

    def memory(self, nodes: Ints, divided: Floats, count: Ints) -> tuple[Floats, Floats]:
        """Return size, shape (k,), and kinds of memory, shape (5, k), of one part of each of `k` nodes.

        Where the graph does not tell parameters from other memory, all of it is taken for parameters.
        """
        parameters = np.where(divided, count, 1)
        parts = self.graph.parts[:, nodes] / count
        parts[COPIED] = self.graph.parts[COPIED][:, nodes] / parameters
        return self.graph.size[nodes] / (count if self.has_parts else parameters), parts

    def graph_of(self, draft: Draft, splits: Splits) -> Graph:
        """Return the graph of a draft, its nodes and edges in the order of the tasks.

        Parameters
        ----------
        draft
            What came out of splitting the graph.
        splits
            For each split node its dimension and the number of parts.
        """
        graph, tasks, role = self.graph, draft.tasks, draft.role
        node, new, part = tasks.node, role >= SPLIT, role == PART
        count, divided = np.ones(len(graph), dtype=np.int64), np.zeros(len(graph), dtype=bool)
        for i, (dimension, number) in splits.items():
            count[i], divided[i] = number, dimension.divides_parameters
        shared, idle = np.where(part, count[node], 1), new & ~part
        size, parts = self.memory(node, divided[node], shared)
        time = graph.time[:, node] / shared
        time[:, role == SPLIT], time[:, role == CONCATENATE] = self.split_time, self.concatenate_time
        ids = names_of(graph.ids, draft, splits)
        return replace(
            graph,
            ids=ids,
            time=time,
            allowed=graph.allowed[:, node] | idle,
            size=np.where(idle, 0.0, size),
            parts=np.where(idle, 0.0, parts),
            cache=np.where(idle, 0.0, graph.cache[node] / shared),
            backward=graph.backward[node],
            color=np.where(new, -1, graph.color[node]),
            layer=np.where(new, -1, graph.layer[node]),
            edges=np.column_stack((tasks.before.items, tasks.before.owners())),
            cost=tasks.cost[tasks.before_tensor],
            names=tuple(
                str(own) if is_new else graph.names[i]
                for i, own, is_new in zip(node.tolist(), ids, new.tolist(), strict=True)
            ),
            extras=type(graph.extras)(top=graph.extras.top),
        )
