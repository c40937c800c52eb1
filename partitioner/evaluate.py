"""What a placement costs and which rules it breaks, computed from the user's graph alone.

Nothing here is shared with the methods, so that a plan's value is never a solver's own claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from partitioner.devices import Devices
from partitioner.errors import OptionError, shown
from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.latency import latency_of
from partitioner.evaluation.placed import Placed, read_placement
from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.shape import Shape, placement_shape
from partitioner.evaluation.violations import violations_of
from partitioner.formats.networkx_graph import from_networkx
from partitioner.graph import Floats, Graph

OBJECTIVES = ("throughput", "gpipe", "latency")


@dataclass(frozen=True)
class DeviceLoad:
    """The share of one device; pairs are (forward, backward), times in the graph's unit.

    Parameters
    ----------
    name, kind
        The device, e.g. ``accelerator0``, and its kind.
    load
        Time per sample that it is busy, under the model of communication, forward and backward together.
    compute, transfer_in, transfer_out
        Processing, and transfers from and to host memory.
    memory, memory_limit
        Total size placed here, and the limit (None without one).
    nodes
        How many nodes are placed here.
    """

    name: str
    kind: str
    load: float
    compute: tuple[float, float]
    transfer_in: tuple[float, float]
    transfer_out: tuple[float, float]
    memory: float
    memory_limit: float | None
    nodes: int


@dataclass(frozen=True)
class Evaluation:
    """The verdict on a placement.

    Parameters
    ----------
    objective, value
        What was computed, and its value.
    loads
        One entry a device, in the order of `Devices.names`, then devices that do not exist.
    violations
        The broken rules in words; empty for a placement that is feasible.
    shape
        Chain, convex or free, and the order of the devices if it is a chain.
    schedule
        For latency what runs when; None if there is no order in which all can run.
    """

    objective: str
    value: float
    loads: tuple[DeviceLoad, ...]
    violations: tuple[str, ...]
    shape: Shape
    schedule: Schedule | None = None

    @property
    def feasible(self) -> bool:
        """True if no rule is broken."""
        return not self.violations

    @property
    def bottleneck(self) -> DeviceLoad:
        """The device with the largest load."""
        return max(self.loads, key=lambda entry: entry.load)


def evaluate(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    placement: Mapping[Any, str],
    objective: str = "throughput",
    *,
    subgraphs_per_accelerator: int = 1,
    subgraphs: Mapping[Any, int] | None = None,
    limited_cpus: bool = False,
) -> Evaluation:
    """Compute the value of any placement and check it against every rule.

    The load of a device is the time per sample that it is busy (paper, Sections 3, 5.1 and 5.3): the
    processing of its nodes; for every tensor made elsewhere with a consumer here one transfer in;
    for every tensor made here with a consumer elsewhere one transfer out; transfers only if the
    kind pays for them. A transfer in belongs to the backward pass if all its consumers here do.

    Parameters
    ----------
    graph, devices
        The workload; the graph may be networkx's, as in :func:`partitioner.solve`.
        `devices.communication` says how transfers and processing add up.
    placement
        The name of a device for every node id.
    objective
        ``"throughput"``: the largest load over the devices, forward and backward together
        (PipeDream); ``"gpipe"``: the largest forward plus the largest backward load (Appendix D);
        ``"latency"``: the time of a single sample (Appendix A), see the notes.
    subgraphs_per_accelerator
        For latency: how many forward subgraphs an accelerator may hold, and how many backward ones.
    subgraphs
        For latency: the index, from 0, of the subgraph that each node of an accelerator belongs to;
        an accelerator runs those of each pass in increasing order. None: the fewest contiguous
        subgraphs, each as early as possible.
    limited_cpus
        For latency: run one node at a time on each CPU, the longest remaining path first, on any CPU of
        the kind, whatever number the placement says. Else there are as many cores as needed.

    Raises
    ------
    WorkloadError
        If a node is not placed, or an id, device name or index of a subgraph means nothing.
    OptionError
        If the objective is unknown, or an option has a value it may not have.

    Notes
    -----
    For latency, a device that pays for communication runs subgraphs. One starts when all tensors that it
    takes from elsewhere are in host memory and the device's previous subgraph has ended; it fetches
    them, processes its nodes, and sends every tensor that is used outside it, even on the same device;
    then its outputs are in host memory, not earlier. A node on any other kind starts when its inputs are
    in host memory. The value is the last finish, or infinity if subgraphs wait for one another in a circle.
    Loads are as scheduled, so that every subgraph pays its own transfers; memory, numbers of nodes and
    violations are those of the placement as it is given.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], cost=0.5)
    >>> devices = Devices.accelerated(2)
    >>> evaluate(graph, devices, {0: "accelerator0", 1: "accelerator1"}).value
    2.5
    >>> evaluate(graph, devices, {0: "accelerator0", 1: "accelerator1"}, "latency").value
    4.0
    """
    if objective not in OBJECTIVES:
        raise OptionError(f"objective {shown(objective)} cannot be evaluated; known: {', '.join(OBJECTIVES)}")
    _check_options(objective, subgraphs_per_accelerator, subgraphs, limited_cpus)
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    placed = read_placement(graph, devices, placement)
    if objective == "latency":
        return _latency(placed, subgraphs_per_accelerator, subgraphs, limited_cpus)
    compute = compute_times(placed)
    into, out = transfer_times(placed)
    load = loads_of(devices.communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    by_pass = loads_of(devices.communication, compute, into, out)
    value = load.max() if objective == "throughput" else by_pass.max(axis=1).sum()
    loads = _loads(placed, load, compute, into, out)
    shape = placement_shape(graph, placed.device, placed.names)
    return Evaluation(objective, float(value), loads, violations_of(placed), shape)


def _check_options(objective: str, limit: object, subgraphs: object, limited_cpus: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError(f"subgraphs_per_accelerator = {shown(limit)}: must be an integer of at least 1")
    if not isinstance(limited_cpus, bool):
        raise OptionError(f"limited_cpus = {shown(limited_cpus)}: must be True or False")
    if objective != "latency" and (limit > 1 or subgraphs is not None or limited_cpus):
        words = "subgraphs_per_accelerator, subgraphs and limited_cpus"
        raise OptionError(f"{words} mean nothing for objective {shown(objective)}, only for 'latency'")


def _latency(
    placed: Placed, limit: int, subgraphs: Mapping[Any, int] | None, limited_cpus: bool
) -> Evaluation:
    found = latency_of(placed, limit, subgraphs, limited_cpus)
    loads = _loads(placed, found.load, found.compute, found.transfer_in, found.transfer_out)
    violations = found.violations + violations_of(placed)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    return Evaluation("latency", found.value, loads, violations, shape, found.schedule)


def _loads(
    placed: Placed, load: Floats, compute: Floats, into: Floats, out: Floats
) -> tuple[DeviceLoad, ...]:
    kinds = placed.devices.kinds
    memory = np.bincount(placed.device, placed.graph.size, len(placed.names))
    count = np.bincount(placed.device, minlength=len(placed.names))
    return tuple(
        DeviceLoad(
            name=name,
            kind=kinds[placed.kind[i]].name,
            load=float(load[i]),
            compute=_pair(compute[:, i]),
            transfer_in=_pair(into[:, i]),
            transfer_out=_pair(out[:, i]),
            memory=float(memory[i]),
            memory_limit=kinds[placed.kind[i]].memory,
            nodes=int(count[i]),
        )
        for i, name in enumerate(placed.names)
    )


def _pair(values: Floats) -> tuple[float, float]:
    return float(values[0]), float(values[1])
