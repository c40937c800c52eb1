"""The user's constraints that a placement breaks, as messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.evaluation.shape import chain_arcs
from partitioner.workload.constraints import Constraints, Range
from partitioner.workload.graph import Extras, Ints
from partitioner.workload.graph_validation import node_name
from partitioner.workload.resolved_constraints import Demands, demands_of, neighbour_edges


def demand_violations(
    placed: Placed,
    constraints: Constraints,
    replicas: Replicas,
    chain: bool,
    order: Sequence[int] | None = None,
    staged: Placed | None = None,
) -> tuple[str, ...]:
    """Return a message for every broken constraint.

    Parameters
    ----------
    placed, constraints, replicas
        The placement, the constraints on it, and its replicas.
    chain
        Whether the split is a chain.
    order
        The stages in the user's order; None if there is none.
    staged
        The placement with stages in place of devices, which `order` then refers to; None if each device has
        one stage.

    Raises
    ------
    WorkloadError
        If a constraint does not fit the graph or the devices.
    """
    demands = demands_of(placed.graph, placed.devices, constraints)
    found = _kinds(placed, demands) + _pins(placed, demands, replicas) + _together(placed, demands)
    stages = placed if staged is None else staged
    found += _stages(stages, constraints) + _idle(placed, replicas) * constraints.use_all_devices
    found += _copies(placed, replicas) * constraints.no_replicas
    found += _unequal(placed, replicas) * constraints.equal_replicas
    if constraints.neighbours_only:
        found += _distant(_exchanging(stages, constraints), chain, order)
    if chain:
        found += _out_of_order(stages, demands.sequence, order)
    return tuple(found)


def _kinds(placed: Placed, demands: Demands) -> list[str]:
    may = demands.may[placed.kind[placed.device], np.arange(len(placed.graph))]
    return [
        f"{node_name(placed.graph, i)} is on {placed.names[placed.device[i]]}, which the constraints forbid"
        for i in np.flatnonzero(~may).tolist()
    ]


def _pins(placed: Placed, demands: Demands, replicas: Replicas) -> list[str]:
    pinned = np.flatnonzero(demands.device >= 0)
    wrong = pinned[replicas.lead[demands.device[pinned]] != placed.device[pinned]]
    return [
        f"{node_name(placed.graph, i)} is pinned to {placed.names[demands.device[i]]}, "
        f"it is on {placed.names[placed.device[i]]}"
        for i in wrong.tolist()
    ]


def _together(placed: Placed, demands: Demands) -> list[str]:
    found = []
    for nodes in demands.together:
        apart = nodes[placed.device[nodes] != placed.device[nodes[:1]]]
        for i in apart[:1].tolist():
            one, first = placed.names[placed.device[i]], int(nodes[0])
            found.append(
                f"{node_name(placed.graph, first)} and {node_name(placed.graph, i)} must be together: "
                f"they are on {placed.names[placed.device[first]]} and {one}"
            )
    return found


def _stages(placed: Placed, constraints: Constraints) -> list[str]:
    used, nodes = np.unique(placed.device, return_counts=True)
    pairs = np.unique(np.stack((placed.device, placed.graph.layer), axis=1), axis=0)
    layers = np.bincount(pairs[pairs[:, 1] >= 0, 0], minlength=len(placed.names))[used]
    names = [placed.names[i] for i in used]
    found = _beyond(names, nodes, "nodes", constraints.nodes_per_stage)
    found += _beyond(names, layers, "layers", constraints.layers_per_stage)
    if constraints.stages not in (None, len(used)):
        found.append(f"the number of stages is {len(used)}, it must be {constraints.stages}")
    return found


def _beyond(names: Sequence[str], numbers: Ints, what: str, limits: Range) -> list[str]:
    least, most = limits
    few = [(name, n, "least", least) for name, n in zip(names, numbers, strict=True) if n < (least or 0)]
    many = [(name, n, "most", most) for name, n in zip(names, numbers, strict=True) if n > (most or n)]
    return [
        f"{name} holds {n} {what}, a stage must hold at {bound} {limit}"
        for name, n, bound, limit in few + many
    ]


def _idle(placed: Placed, replicas: Replicas) -> list[str]:
    used = np.isin(replicas.lead, placed.device)
    existing = len(placed.devices.names)
    return [f"{placed.names[i]} is not used" for i in np.flatnonzero(~used[:existing]).tolist()]


def _copies(placed: Placed, replicas: Replicas) -> list[str]:
    return [
        f"{placed.names[i]} holds a copy of a stage, which the constraints forbid"
        for i in np.flatnonzero(replicas.further).tolist()
    ]


def _unequal(placed: Placed, replicas: Replicas) -> list[str]:
    """Return a message for each stage that has not as many devices and copies as the first one."""
    first, *others = np.unique(placed.device).tolist()
    counts = {stage: (int(replicas.devices[stage]), int(replicas.count[stage])) for stage in (first, *others)}
    return [
        f"the stages of {placed.names[first]} and {placed.names[stage]} have {_in_words(counts[first])} and "
        f"{_in_words(counts[stage])}, their numbers must be equal"
        for stage in others
        if counts[stage] != counts[first]
    ]


def _in_words(counts: tuple[int, int]) -> str:
    devices, copies = counts
    return f"{devices} device{'s' * (devices > 1)}" + f" in {copies} copies" * (copies not in (1, devices))


def _out_of_order(placed: Placed, sequence: Ints, order: Sequence[int] | None) -> list[str]:
    """Return a message for each node of the sequence whose stage should have ended before it."""
    home = placed.device[sequence].tolist()
    stages = list(dict.fromkeys(home)) if order is None else list(order)
    place = [stages.index(device) for device in home]
    return [
        f"{node_name(placed.graph, int(sequence[i]))} is on {placed.names[home[i]]}, but the module before "
        "it is in a later stage: stages must have consecutive modules"
        for i in range(1, len(place))
        if place[i] < place[i - 1]
    ]


def _exchanging(placed: Placed, constraints: Constraints) -> Placed:
    """Return the placement with only those edges whose ends must be in one stage or in consecutive ones."""
    edges = neighbour_edges(placed.graph, constraints)
    if len(edges) == len(placed.graph.edges):
        return placed
    return replace(
        placed, graph=replace(placed.graph, edges=edges, cost=np.zeros(len(edges)), extras=Extras())
    )


def _distant(placed: Placed, chain: bool, order: Sequence[int] | None) -> list[str]:
    """Return a message for each two stages that exchange tensors but cannot be consecutive."""
    pairs = np.unique(np.sort(placed.device[placed.graph.edges], axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if order is not None:
        place = {stage: number for number, stage in enumerate(order)}
        far = [(i, j) for i, j in pairs.tolist() if abs(place[i] - place[j]) > 1]
        names = [f"{placed.names[i]} and {placed.names[j]}" for i, j in far]
        return [f"{each} exchange tensors, but are not consecutive in the order" for each in names]
    adjacent: nx.Graph[int] = nx.Graph(pairs.tolist())
    found = [
        f"{placed.names[stage]} exchanges tensors with {degree} stages, it has at most two neighbours"
        for stage, degree in adjacent.degree
        if degree > 2
    ]
    found += [
        f"{', '.join(placed.names[stage] for stage, _ in nx.find_cycle(adjacent, part))} "
        "exchange tensors in a circle"
        for part in map(min, nx.connected_components(adjacent))
        if _is_circle(adjacent, part)
    ]
    return found if found or not chain else _against_direction(placed, adjacent)


def _is_circle(adjacent: nx.Graph[int], stage: int) -> bool:
    part = adjacent.subgraph(nx.node_connected_component(adjacent, stage))
    return part.number_of_edges() >= part.number_of_nodes()


def _against_direction(placed: Placed, adjacent: nx.Graph[int]) -> list[str]:
    """Return a message for each sequence of neighbouring stages in which edges lead in both directions."""
    place: dict[int, int] = {}
    for part in nx.connected_components(adjacent):
        end = min(stage for stage in part if adjacent.degree[stage] == 1)
        line = nx.dfs_preorder_nodes(adjacent, end)
        place |= {stage: len(place) + number for number, stage in enumerate(line)}
    arcs = placed.device[chain_arcs(placed.graph, placed.device)].tolist()
    part_of = {s: n for n, part in enumerate(nx.connected_components(adjacent)) for s in part}
    ahead = {part_of[i] for i, j in arcs if place[i] < place[j]}
    back = {part_of[i]: (i, j) for i, j in arcs if place[i] > place[j]}
    return [
        f"the stages that exchange tensors with {placed.names[i]} and {placed.names[j]} "
        "can stand in no line in the order of the pipeline"
        for part, (i, j) in back.items()
        if part in ahead
    ]
