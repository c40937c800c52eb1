"""One graph of a model from several ones, each with the times on a kind of device of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.phases import PHASES


def joined(graphs: Mapping[str, Graph]) -> Graph:
    """Return the graph of a model with a row of times for every kind of device.

    Parameters
    ----------
    graphs
        For the name of each kind the graph with the times on it, which has one kind. All have the same nodes
        and edges; memory and cache of a node are the largest of all.

    Examples
    --------
    >>> slow, fast = (Graph.from_arrays({"accelerator": [time]}) for time in (2.0, 1.0))
    >>> joined({"slow": slow, "fast": fast}).time.tolist()
    [[2.0], [1.0]]
    """
    every, first = list(graphs.values()), next(iter(graphs.values()))
    extras = replace(first.extras, nodes=_nodes(graphs))
    return replace(
        first,
        kinds=tuple(graphs),
        time=np.concatenate([graph.time for graph in every]),
        allowed=np.concatenate([graph.allowed for graph in every]),
        size=np.max([graph.size for graph in every], axis=0),
        parts=np.max([graph.parts for graph in every], axis=0),
        cache=np.max([graph.cache for graph in every], axis=0),
        extras=extras,
    )


def one_of_each(devices: Mapping[str, Devices]) -> Devices:
    """Return one device of each kind; each is the first kind of the devices given for its name."""
    return Devices(tuple(replace(own.kinds[0], name=name, count=1) for name, own in devices.items()))


def _nodes(graphs: Mapping[str, Graph]) -> Sequence[Mapping[str, Any]]:
    """Return the further fields of every node, in which the times of phases name their kinds."""
    first = next(iter(graphs.values())).extras.nodes
    if not any(PHASES in node for node in first):
        return first
    found = []
    for i, node in enumerate(first):
        own = {name: graph.extras.nodes[i][PHASES] for name, graph in graphs.items()}
        times = {
            phase: {name: next(iter(own[name][phase].values())) for name in own} for phase in node[PHASES]
        }
        found.append({**node, PHASES: times})
    return found
