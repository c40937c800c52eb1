"""The room of a device for samples in flight, and the nodes that keep most of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.evaluation.loads import DeviceLoad
from partitioner.workload.graph import Bools, Graph, NodeId

MOST = 5  # nodes that are named


@dataclass(frozen=True)
class NodeCache:
    """The memory that a node keeps of every sample in flight."""

    node: NodeId
    name: str
    cache: float


@dataclass(frozen=True)
class Room:
    """How many samples in flight a stage has room for, in the unit of the graph's sizes (bytes).

    Parameters
    ----------
    capacity
        How many samples fit, on all devices that share the stage together.
    held, limit
        What a device holds without any sample, and its memory.
    cache
        What it keeps of every sample that it works on.
    node_count
        How many of its nodes keep something.
    nodes
        Those that keep the most, in decreasing order.
    """

    capacity: int
    held: float
    limit: float
    cache: float
    node_count: int
    nodes: tuple[NodeCache, ...]


def room_of(graph: Graph, mine: Bools, load: DeviceLoad, samples: float, copies: int) -> Room:
    """Return the room of a device, given its nodes, the samples in flight and the devices of its stage."""
    assert load.capacity is not None and load.memory_limit is not None
    kept = np.where(mine, graph.cache, 0.0)
    most = [i for i in np.argsort(-kept, kind="stable").tolist() if kept[i]]
    return Room(
        capacity=load.capacity,
        held=load.memory - -(-int(samples) // copies) * load.cache,
        limit=load.memory_limit,
        cache=load.cache,
        node_count=len(most),
        nodes=tuple(NodeCache(graph.ids[i], graph.names[i], float(kept[i])) for i in most[:MOST]),
    )
