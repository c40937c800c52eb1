"""From parts of supernodes to a placement of the user's nodes, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.loads import part_numbers
from partitioner.methods.method import Outcome, Part
from partitioner.methods.rules import obeys
from partitioner.problem.problem import Problem
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId


@dataclass(frozen=True)
class Placement:
    """The plan that a method found, by the user's names of nodes and devices.

    Parameters
    ----------
    device
        For every node the device of its part, the first one if the part has several.
    replicas
        The further devices of each part with several, by its first device.
    order
        The first devices of the parts, in the order of the parts.
    sequence
        Only for makespans: all nodes in the order in which their devices run them.
    stage_of
        The number of every node's part, if devices have several parts; else None.
    alternatives
        The name of the alternative of each node that is not run as its own figures say.
    """

    device: Mapping[NodeId, str]
    replicas: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    sequence: tuple[NodeId, ...] | None = None
    stage_of: Mapping[NodeId, int] | None = None
    alternatives: Mapping[NodeId, str] = field(default_factory=dict)


def expand(graph: Graph, devices: Devices, outcome: Outcome) -> Placement | None:
    """Return the placement that an outcome describes; None if the outcome has no parts."""
    if not outcome.parts:
        return None
    names = _device_names(devices, outcome.problem, outcome.parts)
    part_of_node = part_numbers(outcome.parts, outcome.problem.n)[outcome.problem.member].tolist()
    firsts = tuple(each[0] for each in names)
    several = len(set(firsts)) < len(firsts)
    return Placement(
        device={node: names[i][0] for node, i in zip(graph.ids, part_of_node, strict=True)},
        replicas={first: tuple(others) for first, *others in names if others},
        order=firsts,
        sequence=_sequence(graph, outcome),
        stage_of=dict(zip(graph.ids, part_of_node, strict=True)) if several else None,
        alternatives={graph.ids[i]: name for i, name in outcome.alternatives.items()},
    )


def _sequence(graph: Graph, outcome: Outcome) -> tuple[NodeId, ...] | None:
    if outcome.order is None:
        return None
    node = np.argsort(outcome.problem.member)[outcome.order]
    return tuple(graph.ids[i] for i in node.tolist())


def _device_names(devices: Devices, problem: Problem, parts: Sequence[Part]) -> list[list[str]]:
    """Return the names of the devices of every part: those that it demands, then the lowest free ones."""
    chosen = [list(part.devices or pinned_devices(problem, part)) for part in parts]
    for kind in range(len(devices.kinds)):
        mine = [i for i, part in enumerate(parts) if part.kind == kind]
        taken = {index for i in mine for index in chosen[i]}
        free = (index for index in count() if index not in taken)
        for i in mine:
            chosen[i] += [next(free) for _ in range(parts[i].replicas - len(chosen[i]))]
    kinds = [devices.kinds[part.kind] for part in parts]
    return [[kind.device(index) for index in each] for kind, each in zip(kinds, chosen, strict=True)]


def pinned_devices(problem: Problem, part: Part) -> list[int]:
    """Return the indices of the devices that supernodes of the part are pinned to."""
    if problem.pipeline is None:
        return []
    pinned = problem.pipeline.pinned
    return sorted({index for v in part.nodes.tolist() for index in pinned.row(v).tolist()})


def expand_subgraphs(graph: Graph, outcome: Outcome) -> dict[NodeId, int] | None:
    """Return the index of every node's subgraph on its device; None if the method chose no subgraphs."""
    if outcome.subgraph is None:
        return None
    index = outcome.subgraph[outcome.problem.member].tolist()
    return dict(zip(graph.ids, index, strict=True))


def parts_of(
    problem: Problem,
    graph: Graph,
    devices: Devices,
    placement: Mapping[Any, str],
    order: Sequence[str],
    replicas: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Part] | None:
    """Return the parts of a user's placement, as a start for a method; None if they break a rule.

    A supernode goes to the device of its last member that takes time. Its free nodes may have been
    elsewhere in the placement, so the parts that result are checked.

    Parameters
    ----------
    problem, graph, devices
        The contracted graph and what it was made of.
    placement, order
        A feasible placement and the devices that it uses, for a chain in order.
    replicas
        The further devices of a part, by its device in the placement.
    """
    number = {name: place for place, name in enumerate(order)}
    takes_time = _takes_time(problem, graph, devices)
    place = np.zeros(problem.n, dtype=np.int64)
    for chosen in (~takes_time, takes_time):
        for i in np.flatnonzero(chosen).tolist():
            place[problem.member[i]] = number[placement[graph.ids[i]]]
    kinds = [found[0] for name in order if (found := devices.kind_of(name))]
    copies = [1 + len(replicas.get(name, ())) for name in order]
    parts = [
        Part(kind, np.flatnonzero(place == p), r)
        for p, (kind, r) in enumerate(zip(kinds, copies, strict=True))
    ]
    parts = [part for part in parts if len(part.nodes)]
    return parts if obeys(problem, parts) else None


def _takes_time(problem: Problem, graph: Graph, devices: Devices) -> NDArray[np.bool_]:
    """Return whether each node takes time on a kind that may run its supernode, shape (N,)."""
    takes = np.zeros(len(graph), dtype=bool)
    for k, kind in enumerate(devices.kinds):
        if kind.row in graph.kinds:
            row = graph.time[graph.kinds.index(kind.row)]
            takes |= problem.allowed[k, problem.member] & (row > 0)
    return takes
