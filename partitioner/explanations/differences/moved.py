"""The nodes that are on other devices in a second plan, and what both plans put on each device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partitioner.evaluation.loads import DeviceLoad
from partitioner.workload.graph import Graph, NodeId


@dataclass(frozen=True)
class MovedNodes:
    """Nodes that are on one device in the first plan and on another one in the second.

    Parameters
    ----------
    source, target
        The devices, by the names of the first plan; by that of the second if the first does not use it.
    nodes, names
        The nodes.
    """

    source: str
    target: str
    nodes: tuple[NodeId, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class DeviceChange:
    """What a device holds and costs in two plans; 0 where a plan does not use it.

    Parameters
    ----------
    device
        Its name in the first plan, or else in the second.
    renamed
        Its name in the second plan; empty if the second plan does not use it.
    load, memory, nodes, copies
        The time per sample, the memory, the number of nodes, and of devices that share its stage, in the
        first and in the second plan.
    """

    device: str
    renamed: str
    load: tuple[float, float]
    memory: tuple[float, float]
    nodes: tuple[int, int]
    copies: tuple[int, int]


def moved_nodes(
    graph: Graph, before: Mapping[NodeId, str], after: Mapping[NodeId, str], names: Mapping[str, str]
) -> tuple[MovedNodes, ...]:
    """Return the nodes that moved, by their devices, the largest groups first.

    `names` has the name in the first plan of every device that the second placement uses.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, node in enumerate(graph.ids):
        pair = before[node], names[after[node]]
        if pair[0] != pair[1]:
            groups[pair].append(i)
    found = [
        MovedNodes(*pair, tuple(graph.ids[i] for i in nodes), tuple(graph.names[i] for i in nodes))
        for pair, nodes in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: -len(each.nodes)))


def changed_devices(
    before: Sequence[DeviceLoad], after: Sequence[DeviceLoad], names: Mapping[str, str]
) -> tuple[DeviceChange, ...]:
    """Return what each device that one of two plans uses holds and costs in both."""
    old = {load.name: load for load in before if load.nodes and load.replica_of is None}
    new = {names[load.name]: load for load in after if load.nodes and load.replica_of is None}
    order = [load.name for load in before if load.name in {*old, *new}]
    order += [name for name in new if name not in order]
    return tuple(_change(name, old.get(name), new.get(name), before, after) for name in order)


def _change(
    name: str,
    old: DeviceLoad | None,
    new: DeviceLoad | None,
    before: Sequence[DeviceLoad],
    after: Sequence[DeviceLoad],
) -> DeviceChange:
    return DeviceChange(
        device=name,
        renamed=new.name if new else "",
        load=(old.load if old else 0.0, new.load if new else 0.0),
        memory=(old.memory if old else 0.0, new.memory if new else 0.0),
        nodes=(old.nodes if old else 0, new.nodes if new else 0),
        copies=(_copies(old, before), _copies(new, after)),
    )


def _copies(load: DeviceLoad | None, loads: Sequence[DeviceLoad]) -> int:
    """Return how many devices share the stage of a device; 0 without the device."""
    return 0 if load is None else 1 + sum(other.replica_of == load.name for other in loads)
