"""The calls of a joint graph that each device runs, and the tensors that devices exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import torch

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.graphs.joint import is_backward
from partitioner.integrations.torch.graphs.node_operators import node_operators
from partitioner.integrations.torch.graphs.operations import in_place_argument
from partitioner.integrations.torch.placing.assignment import Assignment, require_operators
from partitioner.workload.graph import Graph

DROPOUT = "dropout_p"


@dataclass(frozen=True, eq=False)
class DeviceProgram:
    """What a device does in a step.

    Parameters
    ----------
    device
        Its name.
    calls
        The nodes of the joint graph that it runs, in its order.
    sends
        For each of these that others read, the numbers of the devices that read it.
    receives
        The nodes whose values it gets, with the numbers of their devices, in the order in which they run.
    results
        The names of the values that it returns.
    number
        The number of each node that is sent, by name, which is the tag of its messages.
    """

    device: str
    calls: tuple[Any, ...]
    sends: Mapping[Any, tuple[int, ...]]
    receives: tuple[tuple[Any, int], ...]
    results: frozenset[str]
    number: Mapping[str, int]


def programs_of(seen: Seen, assignment: Assignment, graph: Graph) -> list[DeviceProgram]:
    """Return the program of each device that has calls; all follow one order of all calls.

    Raises
    ------
    WorkloadError
        If the graph and the joint graph do not have the same operators, or a call cannot run in processes.
    """
    calls = [node for node in seen.graph.nodes if node.op == "call_function" and node.name in seen.owner]
    require_operators(assignment, {seen.owner[node.name] for node in calls}, ())
    home = {node: assignment.device[seen.owner[node.name]] for node in calls}
    _require_separable(seen, home)
    calls = _ordered(calls, _ranks(seen, calls, assignment, graph))
    devices = [name for name in assignment.names if name in set(home.values())]
    rank = {name: i for i, name in enumerate(devices)}
    number = {node.name: i for i, node in enumerate(calls)}
    readers = {
        node: tuple(sorted({rank[home[one]] for one in node.users if one in home} - {rank[home[node]]}))
        for node in calls
    }
    results = {*seen.outputs, *seen.gradients, *seen.updates}
    return [
        DeviceProgram(
            device=name,
            calls=tuple(node for node in calls if home[node] == name),
            sends={node: readers[node] for node in calls if home[node] == name and readers[node]},
            receives=tuple((node, rank[home[node]]) for node in calls if rank[name] in readers[node]),
            results=frozenset(results - {node.name for node in calls if home[node] != name}),
            number=number,
        )
        for name in devices
    ]


def _ranks(seen: Seen, calls: list[Any], assignment: Assignment, graph: Graph) -> dict[Any, int]:
    """Return the position of each call's node in the plan's order; all are 0 if there is none."""
    position = {
        (name, backward): assignment.position.get(node, 0)
        for node, names, backward in zip(
            graph.ids, node_operators(graph), graph.backward.tolist(), strict=True
        )
        for name in names
    }
    return {node: position.get((seen.owner[node.name], is_backward(node)), 0) for node in calls}


def _ordered(calls: list[Any], rank: Mapping[Any, int]) -> list[Any]:
    """Return the calls by their ranks, each after what it reads."""
    place = {node: i for i, node in enumerate(calls)}
    depends: nx.DiGraph[Any] = nx.DiGraph()
    depends.add_nodes_from(calls)
    depends.add_edges_from((read, node) for node in calls for read in node.all_input_nodes if read in place)
    return list(nx.lexicographical_topological_sort(depends, key=lambda node: (rank[node], place[node])))


def _require_separable(seen: Seen, home: Mapping[Any, str]) -> None:
    drawing = [node for node in home if _draws(node)]
    rule = f"draws at random: all that do must be on one device, as {drawing[0].name} is" if drawing else ""
    flaws = [
        Flaw(f"operator {seen.owner[node.name]}", "", home[node], rule)
        for node in drawing
        if home[node] != home[drawing[0]]
    ]
    flaws += [
        Flaw(f"operator {seen.owner[node.name]}", "", "", "must not write into a tensor in place")
        for node in home
        if in_place_argument(node) is not None
    ]
    if flaws:
        raise WorkloadError(flaws)


def _draws(node: Any) -> bool:
    """Whether a call draws at random; attention without dropout only could."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    return DROPOUT not in names or given.get(DROPOUT, 0.0) > 0
