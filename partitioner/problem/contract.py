"""The contraction of a graph to a problem (paper, Appendix E.1), step by step; or its nodes as they are."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.goal import CHAIN, Goal
from partitioner.problem.groups import Groups, colocated_groups, new_groups, survivors
from partitioner.problem.measure import Measure
from partitioner.problem.nets import build_nets, forward_outputs, nets_by_edge, no_nets
from partitioner.problem.orders import depth_first
from partitioner.problem.pipeline import UNLIMITED
from partitioner.problem.precedence import distinct, merge_cycles, precedence_pairs, relabelled
from partitioner.problem.problem import Problem, Region
from partitioner.problem.tasks import Tasks, tasks_of
from partitioner.problem.variants import (
    AlternativesProblem,
    ChainProblem,
    NodesProblem,
    OperatorNodes,
    OperatorParts,
    OperatorSample,
    PartsProblem,
    PipelineProblem,
    SampleProblem,
)
from partitioner.problem.ways import blocks, ways_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Graph
from partitioner.workload.pass_order import with_pass_order
from partitioner.workload.topological import topological


def contract(graph: Graph, devices: Devices, goal: Goal = CHAIN) -> Problem:
    """Return the problem of a graph, contracted as far as the goal allows.

    Colour classes (and layers, on request) become one group each, and groups that cost nothing merge
    into their only neighbour. For chains there are further steps: orphaned backward groups are ordered by
    mirrored edges, strongly connected components merge before the groups that cost nothing do, and
    supernodes are numbered in a depth-first topological order.

    Parameters
    ----------
    graph, devices
        A checked workload, fitted to the devices (:func:`partitioner.problem.fit.fit`).
    goal
        The measure and the shape of the split.

    Returns
    -------
    Problem
        The problem, contracted only where no optimum can be lost. For chains `coarser` is a contraction that
        goes further, if there is one; for other splits `chain` is the contraction for chains. For latency and
        makespans nothing is contracted: nodes of a group share a device, but run one by one on a CPU, and for
        makespans on any device. For makespans `tasks` has the tensors.
    """
    graph = with_pass_order(graph) if goal.measure is Measure.LAST_OPERATOR else graph
    group = colocated_groups(graph, goal.classes)
    if goal.alternatives:
        return _with_alternatives(graph, devices, group, goal)
    if goal.transfers is None:
        return _contracted(graph, devices, group, goal)
    order = topological(graph.edges, len(graph))
    tasks = tasks_of(graph, devices, group, goal.transfers, order)
    if goal.measure is not Measure.LAST_OPERATOR:
        return _with_tasks(_contracted(graph, devices, group, goal), tasks)
    problem = flow_of(graph, devices, group, order, goal.measure, goal.split)
    return OperatorNodes(**vars(replace(problem, ordered=goal.split == "chain")), tasks=tasks)


def contract_piper(graph: Graph, devices: Devices, goal: Goal) -> Problem:
    """Return the problem of a graph with the costs of Piper's model, as :func:`contract` does."""
    return contract(graph, devices, replace(goal, piper=True))


def _with_alternatives(graph: Graph, devices: Devices, group: Ints, goal: Goal) -> AlternativesProblem:
    """Return the problem for methods that choose among the alternatives of nodes."""
    group, pairs = merge_cycles(group, precedence_pairs(graph, group, goal.sequence))
    chain = _chain_problem(graph, devices, new_groups(graph, devices, group, 1), group, pairs, goal)
    nets = nets_by_edge(graph, chain.member, chain.n) if goal.piper else chain.nets
    count = np.array([kind.count for kind in devices.kinds], dtype=np.int64)
    known = vars(chain) | {"nets": nets, "count": count}
    return AlternativesProblem(
        **known,
        ways=ways_of(graph, chain.member),
        piper=goal.piper,
        block=blocks(graph, chain.member, chain.n),
    )


def _with_tasks(problem: Problem, tasks: Tasks) -> Problem:
    """The problem for methods that place operators; as it is where stages of a chain are asked for."""
    if isinstance(problem, SampleProblem):
        return OperatorSample(**vars(problem), tasks=tasks)
    return OperatorParts(**vars(problem), tasks=tasks) if isinstance(problem, PartsProblem) else problem


def _contracted(graph: Graph, devices: Devices, group: Ints, goal: Goal) -> Problem:
    """Return the problem for methods that do not place single operators."""
    if goal.split == "chain":
        return _contract_chain(graph, devices, group, goal)
    loads = goal.measure if goal.measure.passes == 2 else Measure.LARGEST_LOAD
    chain = _contract_chain(graph, devices, group, replace(goal, measure=loads))
    if goal.measure is Measure.ONE_SAMPLE:
        order = topological(graph.edges, len(graph))
        return SampleProblem(
            **vars(flow_of(graph, devices, group, order, goal.measure, "convex")),
            backward=graph.backward[order],
            subgraphs=goal.subgraphs,
            chain=chain,
        )
    groups = _merged_groups(graph, devices, group, goal)
    kept, label = np.unique(survivors(groups.parent), return_inverse=True)
    place = np.full(len(kept), chain.n)
    np.minimum.at(place, label[group], chain.member)
    kept, member = _numbered(kept, label[group], np.argsort(place, kind="stable"))
    problem = replace(_problem(graph, devices, groups, kept, member, goal), split=goal.split, ordered=False)
    passes, convex = (False, True) if goal.contiguous_backward else (False,), goal.split == "convex"
    return PartsProblem(
        **vars(problem),
        regions=tuple(region_of(graph, member, b) for b in passes) if convex else (),
        contiguous=(problem.pays | goal.contiguous_cpus) & convex,
        chain=chain,
    )


def _contract_chain(graph: Graph, devices: Devices, group: Ints, goal: Goal) -> ChainProblem:
    order = goal.sequence if goal.split == "chain" else goal.sequence[:0]
    group, pairs = merge_cycles(group, precedence_pairs(graph, group, order))
    groups = _merged_groups(graph, devices, group, goal)
    problem = _chain_problem(graph, devices, groups, group, pairs, goal)
    if len(order) or goal.apart:  # groups that merge could come to stand on a cycle
        return problem
    groups.idle |= groups.counted
    merge_free_nodes(groups, goal.is_roomy(graph, devices), lossless=False)
    left = int((groups.parent == np.arange(len(groups.parent))).sum())
    if left == problem.n:
        return problem
    coarser = _chain_problem(graph, devices, groups, group, pairs, goal)
    if isinstance(coarser, PipelineProblem):
        alone = groups.parent[group] == group
        light = goal.lightened(graph, devices, coarser.member, coarser.n, alone)
        coarser = replace(coarser, relaxed_pipeline=light)
    return replace(problem, coarser=coarser)


def _merged_groups(graph: Graph, devices: Devices, group: Ints, goal: Goal) -> Groups:
    """Return the groups, merged where no optimum can be lost."""
    groups = new_groups(graph, devices, group, goal.measure.passes)
    count = len(groups.idle)
    groups.idle &= ~goal.fixed(group, count)
    groups.counted = groups.idle & goal.counted(graph, devices, group, count)
    groups.idle &= ~groups.counted
    if not goal.rigid and not len(goal.sequence) and not goal.apart:
        merge_free_nodes(groups, goal.is_roomy(graph, devices), lossless=True)
    return groups


def _chain_problem(
    graph: Graph, devices: Devices, groups: Groups, group: Ints, pairs: Ints, goal: Goal
) -> ChainProblem:
    """Return the problem of the remaining groups, numbered in a topological order."""
    kept, label = np.unique(survivors(groups.parent), return_inverse=True)
    pairs = relabelled(pairs, label)
    order = depth_first(_rows(pairs, len(kept)), _rows(pairs[:, ::-1], len(kept)))
    pairs = np.argsort(order)[pairs]
    kept, member = _numbered(kept, label[group], order)
    problem = _problem(graph, devices, groups, kept, member, goal)
    after, before = _rows(pairs, len(kept)), _rows(pairs[:, ::-1], len(kept))
    ordered = vars(replace(problem, successors=after, predecessors=before))
    variant = ChainProblem if problem.pipeline is None else PipelineProblem
    return variant(**ordered, output=forward_outputs(graph, member, len(kept)))


def _numbered(kept: Ints, member: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Return the remaining groups in the given order, and the new number of each node's group."""
    return kept[order], np.argsort(order)[member]


def _problem(graph: Graph, devices: Devices, groups: Groups, kept: Ints, member: Ints, goal: Goal) -> Problem:
    """Return the problem of the remaining groups, without precedence."""
    most = UNLIMITED if goal.needs_all(devices) else len(kept)
    torn = goal.torn(member, len(kept))
    detail = "sources" if devices.communication == "duplex" or devices.levels or devices.groups else "pins"
    empty = rows_of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), len(kept))
    return Problem(
        time=groups.time[:, :, kept],
        size=groups.size[kept],
        allowed=groups.allowed[:, kept] & ~torn,
        successors=empty,
        predecessors=empty,
        nets=build_nets(graph, member, len(kept), "passes" if goal.measure.passes == 2 else detail),
        member=member,
        count=np.array([min(kind.count, most) for kind in devices.kinds], dtype=np.int64),
        memory=np.array([kind.memory_limit for kind in devices.kinds]),
        transfer_factor=np.array(devices.transfer_factors),
        communication=devices.communication,
        relaxed_size=groups.relaxed_size[kept],
        relaxed_allowed=groups.relaxed_allowed[:, kept] & ~torn,
        measure=goal.measure,
        split="chain",
        ordered=True,
        pipeline=goal.pipeline(graph, devices, member, len(kept)),
    )


def _rows(pairs: Ints, count: int) -> Rows:
    sorted_pairs = pairs[np.argsort(pairs[:, 0] * count + pairs[:, 1], kind="stable")]
    return rows_of(sorted_pairs[:, 0], sorted_pairs[:, 1], count)


def merge_free_nodes(groups: Groups, roomy: bool, lossless: bool) -> None:
    """Merge each idle group with at most one neighbour into that neighbour, until none is left.

    On its neighbour's device such a group costs nothing and cuts no tensor. So no optimum is lost if the
    group may run wherever the neighbour may, and memory cannot be a limit (its size is 0, or `roomy`). With
    `lossless=False` other idle groups are merged, too. Idle groups without a neighbour are merged into the
    first group for which this is allowed.

    Parameters
    ----------
    groups
        The groups, which are changed in place.
    roomy
        Whether the whole graph fits into the memory of every device.
    lossless
        Whether to merge only if no optimum and no feasible plan can be lost.
    """
    waiting = [g for g in range(len(groups.parent)) if _is_leaf(groups, g)]
    while waiting:
        leaf = waiting.pop()
        if groups.parent[leaf] != leaf or not _is_leaf(groups, leaf):
            continue
        host = next(iter(groups.neighbours[leaf]), None)
        if host is None:
            continue
        safe = _is_safe(groups, leaf, host, roomy)
        if safe or not lossless:
            _merge(groups, leaf, host, safe)
            waiting.append(host)
    _merge_isolated(groups, roomy, lossless)


def _is_leaf(groups: Groups, g: int) -> bool:
    return bool(groups.idle[g]) and len(groups.neighbours[g]) <= 1


def _is_safe(groups: Groups, leaf: int, host: int, roomy: bool) -> bool:
    """Whether no optimum can be lost by this merge, apart from losses by earlier merges."""
    runs = bool((groups.relaxed_allowed[:, leaf] | ~groups.relaxed_allowed[:, host]).all())
    return runs and (roomy or groups.relaxed_size[leaf] == 0)


def _merge(groups: Groups, leaf: int, host: int, safe: bool) -> None:
    groups.parent[leaf] = host
    groups.size[host] += groups.size[leaf]
    groups.allowed[:, host] &= groups.allowed[:, leaf]
    if safe:
        groups.relaxed_size[host] += groups.relaxed_size[leaf]
        groups.relaxed_allowed[:, host] &= groups.relaxed_allowed[:, leaf]
    groups.neighbours[host].discard(leaf)
    groups.neighbours[leaf].clear()


def _merge_isolated(groups: Groups, roomy: bool, lossless: bool) -> None:
    alone = [g for g in np.flatnonzero(groups.idle).tolist() if not groups.neighbours[g]]
    alone = [g for g in alone if groups.parent[g] == g]
    hosts = np.flatnonzero(groups.parent == np.arange(len(groups.parent)))
    for leaf in alone:
        if lossless and not roomy and groups.size[leaf] > 0:
            continue
        others = (int(h) for h in hosts if h != leaf and groups.parent[h] == h)
        host = next((h for h in others if not lossless or _is_safe(groups, leaf, h, roomy)), None)
        if host is not None:
            _merge(groups, leaf, host, _is_safe(groups, leaf, host, roomy))


def region_of(graph: Graph, member: Ints, backward: bool) -> Region:
    """Return the forward or the backward part of the graph, without nodes that do not affect contiguity.

    A node whose only successor (or only predecessor) is in the same supernode is merged with it: this adds
    and removes no path between supernodes. Merging a whole colour class could add paths.

    Parameters
    ----------
    graph
        The user's graph.
    member
        Shape (N,): supernode of every node.
    backward
        Whether to return the backward part instead of the forward part.
    """
    inside = graph.backward == backward
    edges = graph.edges[inside[graph.edges].all(axis=1)]
    if not (member[edges[:, 0]] == member[edges[:, 1]]).any():
        return _unshrunk(np.flatnonzero(inside), edges, member)
    part: nx.DiGraph[int] = nx.DiGraph()
    part.add_nodes_from(np.flatnonzero(inside).tolist())
    part.add_edges_from(edges.tolist())
    _shrink(part, member)
    number = {node: i for i, node in enumerate(part)}
    kept = [(number[u], number[v]) for u, v in part.edges]
    return Region(member[list(part)], np.array(kept, dtype=np.int64).reshape(-1, 2))


def _unshrunk(nodes: Ints, edges: Ints, member: Ints) -> Region:
    """Return the region of all nodes without merges; edges are ordered by producer, without repetition."""
    number = np.zeros(len(member), dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    ends = number[edges].reshape(-1, 2)
    first = np.unique(ends[:, 0] * len(member) + ends[:, 1], return_index=True)[1]
    first = np.sort(first)
    return Region(member[nodes], ends[first[np.argsort(ends[first, 0], kind="stable")]])


def _shrink(part: nx.DiGraph[int], member: Ints) -> None:
    """Merge nodes into their only successor or only predecessor where these share a supernode."""
    waiting = list(part)
    while waiting:
        node = waiting.pop()
        if node not in part:
            continue
        after, before = list(part.successors(node)), list(part.predecessors(node))
        if len(after) == 1 and member[after[0]] == member[node]:
            part.add_edges_from((u, after[0]) for u in before)
        elif len(before) == 1 and member[before[0]] == member[node]:
            part.add_edges_from((before[0], v) for v in after)
        else:
            continue
        part.remove_node(node)
        waiting += before + after


def flow_of(
    graph: Graph, devices: Devices, group: Ints, order: Ints, measure: Measure, split: str
) -> NodesProblem:
    """Return the problem of the nodes in a topological order, without contraction.

    Parameters
    ----------
    graph, devices
        A checked workload.
    group
        Shape (N,): nodes of a group must share a device.
    order
        Shape (N,): positions of the nodes, producers before consumers.
    measure, split
        What is asked for; problems of makespans have no nets.
    """
    member = np.argsort(order)
    count = len(order)
    edges = distinct(member[graph.edges])
    size, tensors = graph.size[order], measure is not Measure.LAST_OPERATOR
    allowed = np.array([_allowed(graph, devices, k)[order] for k in range(len(devices.kinds))])
    return NodesProblem(
        time=np.array([_times(graph, devices, k)[:, order] for k in range(len(devices.kinds))]),
        size=size,
        allowed=allowed,
        successors=rows_of(edges[:, 0], edges[:, 1], count),
        predecessors=rows_of(edges[:, 1], edges[:, 0], count),
        nets=build_nets(graph, member, count, "sources") if tensors else no_nets(count),
        member=member,
        count=np.array([min(kind.count, count) for kind in devices.kinds], dtype=np.int64),
        memory=np.array([kind.memory_limit for kind in devices.kinds]),
        transfer_factor=np.array(devices.transfer_factors),
        communication=devices.communication,
        relaxed_size=size,
        relaxed_allowed=allowed,
        measure=measure,
        split=split,
        ordered=False,
        pipeline=None,
        group=np.unique(group[order], return_inverse=True)[1],
    )


def _allowed(graph: Graph, devices: Devices, k: int) -> Bools:
    kind = devices.kinds[k]
    if not kind.count or kind.name not in graph.kinds:
        return np.zeros(len(graph), dtype=bool)
    return np.asarray(graph.allowed[graph.kinds.index(kind.name)])


def _times(graph: Graph, devices: Devices, k: int) -> Floats:
    """Return the time of each node in its pass, shape (2, N); 0 in the other pass and if it may not run."""
    time, may = np.zeros((2, len(graph))), _allowed(graph, devices, k)
    if may.any():
        row = graph.time[graph.kinds.index(devices.kinds[k].name)]
        time[graph.backward.astype(int), np.arange(len(graph))] = np.where(may, row, 0.0)
    return time
