"""From parts of supernodes to a placement of the user's nodes, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.devices import Devices
from partitioner.graph import Graph, NodeId
from partitioner.methods.method import Outcome, Part, part_numbers
from partitioner.methods.rules import obeys
from partitioner.preprocess.problem import Problem


def expand(graph: Graph, devices: Devices, outcome: Outcome) -> dict[NodeId, str]:
    """Give every part a device and every node the device of its supernode; empty without parts."""
    parts = outcome.parts or ()
    used: Counter[int] = Counter()
    names = []
    for part in parts:
        names.append(devices.kinds[part.kind].device(used[part.kind]))
        used[part.kind] += 1
    if not names:
        return {}
    part_of_node = part_numbers(parts, outcome.problem.n)[outcome.problem.member].tolist()
    return {node: names[i] for node, i in zip(graph.ids, part_of_node, strict=True)}


def expand_subgraphs(graph: Graph, outcome: Outcome) -> dict[NodeId, int] | None:
    """The index of every node's subgraph among those of its device; None unless the method chose it."""
    if outcome.subgraph is None:
        return None
    index = outcome.subgraph[outcome.problem.member].tolist()
    return dict(zip(graph.ids, index, strict=True))


def parts_of(
    problem: Problem, graph: Graph, devices: Devices, placement: Mapping[Any, str], order: Sequence[str]
) -> list[Part] | None:
    """The parts of a user's placement, as a start for a method; None if they break a rule.

    A supernode goes where its last member that takes time is. Free nodes, which go with it, may have
    been elsewhere; what results is checked.

    Parameters
    ----------
    problem, graph, devices
        The contracted graph and what it was made of.
    placement, order
        A feasible placement and the devices that it uses, for a chain in order.
    """
    number = {name: place for place, name in enumerate(order)}
    takes_time = _takes_time(problem, graph, devices)
    place = np.zeros(problem.n, dtype=np.int64)
    for chosen in (~takes_time, takes_time):
        for i in np.flatnonzero(chosen).tolist():
            place[problem.member[i]] = number[placement[graph.ids[i]]]
    kinds = [found[0] for name in order if (found := devices.kind_of(name))]
    parts = [Part(kind, np.flatnonzero(place == p)) for p, kind in enumerate(kinds)]
    parts = [part for part in parts if len(part.nodes)]
    return parts if obeys(problem, parts) else None


def _takes_time(problem: Problem, graph: Graph, devices: Devices) -> NDArray[np.bool_]:
    """Shape (N,): does the node take time on a kind that may run its supernode?"""
    takes = np.zeros(len(graph), dtype=bool)
    for k, kind in enumerate(devices.kinds):
        if kind.name in graph.kinds:
            row = graph.time[graph.kinds.index(kind.name)]
            takes |= problem.allowed[k, problem.member] & (row > 0)
    return takes
