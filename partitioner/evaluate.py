"""What a placement costs and which rules it breaks, computed from the user's graph alone.

Nothing here is shared with the methods, so that a plan's value is never a solver's own claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.devices import Devices
from partitioner.errors import OptionError, shown
from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.placed import read_placement
from partitioner.evaluation.shape import Shape, placement_shape
from partitioner.evaluation.violations import violations_of
from partitioner.formats.networkx_graph import from_networkx
from partitioner.graph import Graph

OBJECTIVES = ("throughput", "gpipe")


@dataclass(frozen=True)
class DeviceLoad:
    """The share of one device; pairs are (forward, backward), times in the graph's unit.

    Parameters
    ----------
    name, kind
        The device, e.g. ``accelerator0``, and its kind.
    load
        Time per sample under the model of communication, forward and backward together.
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
    """

    objective: str
    value: float
    loads: tuple[DeviceLoad, ...]
    violations: tuple[str, ...]
    shape: Shape

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
        (PipeDream); ``"gpipe"``: the largest forward plus the largest backward load (Appendix D).

    Raises
    ------
    WorkloadError
        If a node is not placed, or an id or device name means nothing.
    OptionError
        If the objective is unknown.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], cost=0.5)
    >>> devices = Devices.accelerated(2)
    >>> evaluate(graph, devices, {0: "accelerator0", 1: "accelerator1"}).value
    2.5
    """
    if objective not in OBJECTIVES:
        raise OptionError(f"objective {shown(objective)} cannot be evaluated; known: {', '.join(OBJECTIVES)}")
    graph = graph if isinstance(graph, Graph) else from_networkx(graph)
    placed = read_placement(graph, devices, placement)
    compute = compute_times(placed)
    into, out = transfer_times(placed)
    load = loads_of(devices.communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    by_pass = loads_of(devices.communication, compute, into, out)
    value = load.max() if objective == "throughput" else by_pass.max(axis=1).sum()
    memory = np.bincount(placed.device, graph.size, len(placed.names))
    count = np.bincount(placed.device, minlength=len(placed.names))
    loads = tuple(
        DeviceLoad(
            name=name,
            kind=devices.kinds[placed.kind[i]].name,
            load=float(load[i]),
            compute=_pair(compute[:, i]),
            transfer_in=_pair(into[:, i]),
            transfer_out=_pair(out[:, i]),
            memory=float(memory[i]),
            memory_limit=devices.kinds[placed.kind[i]].memory,
            nodes=int(count[i]),
        )
        for i, name in enumerate(placed.names)
    )
    shape = placement_shape(graph, placed.device, placed.names)
    return Evaluation(objective, float(value), loads, violations_of(placed), shape)


def _pair(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values[0]), float(values[1])
