"""Checks of parts against the rules of the contracted problem and the user's limits on parts."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from partitioner.methods.loads import part_numbers
from partitioner.methods.method import Part
from partitioner.problem.arrays import Ints
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.problem import Problem, Region
from partitioner.problem.variants import PartsProblem, SampleProblem


def obeys(problem: Problem, parts: Sequence[Part]) -> bool:
    """Whether the parts keep the device counts, memory, allowed kinds, limits and the shape of the split."""
    number = part_numbers(parts, problem.n)
    kind = np.array([part.kind for part in parts], dtype=np.int64)
    enough = (np.bincount(kind, minlength=len(problem.count)) <= problem.count).all()
    fits = (np.bincount(number, problem.size, len(parts)) <= problem.memory[kind]).all()
    runs = problem.allowed[kind[number], np.arange(problem.n)].all()
    if isinstance(problem, SampleProblem):
        return bool(enough and fits and runs) and _is_together(problem, number)
    shaped = bool(enough and fits and runs) and _is_ordered(problem, number)
    shaped = shaped and keeps_limits(problem, parts)
    return shaped and (not isinstance(problem, PartsProblem) or _is_convex(problem, kind, number))


def _is_together(problem: SampleProblem, number: Ints) -> bool:
    """Whether every group is in one part; the order in which the subgraphs of a part run is not checked."""
    pairs = np.unique(np.stack((problem.group, number)), axis=1)
    return bool(pairs.shape[1] == problem.group.max(initial=-1) + 1)


def _is_ordered(problem: Problem, number: Ints) -> bool:
    """Whether no edge of precedence leads to an earlier part."""
    return bool((number[problem.successors.owners()] <= number[problem.successors.items]).all())


def _is_convex(problem: PartsProblem, kind: Ints, number: Ints) -> bool:
    bound = np.flatnonzero(problem.contiguous[kind]).tolist()
    return all(_is_contiguous(region, number, part) for region in problem.regions for part in bound)


def _is_contiguous(region: Region, number: Ints, part: int) -> bool:
    """Whether no path leaves the part and comes back to it."""
    inside = number[region.owner] == part
    leaving = region.edges[inside[region.edges[:, 0]]]
    outside = region.edges[~inside[region.edges].any(axis=1)]
    away: nx.DiGraph[int] = nx.DiGraph(outside.tolist())
    starts = np.unique(leaving[:, 1][~inside[leaving[:, 1]]]).tolist()
    away.add_nodes_from(starts)
    away.add_edges_from((-1, start) for start in starts)
    reached = {-1, *nx.descendants(away, -1)} if starts else set()
    coming = region.edges[inside[region.edges[:, 1]] & ~inside[region.edges[:, 0]]]
    return not reached.intersection(coming[:, 0].tolist())


def keeps_limits(problem: Problem, parts: Sequence[Part]) -> bool:
    """Whether the parts keep the limits of the problem's pipeline and the pins to devices."""
    pipeline = problem.pipeline
    if pipeline is None:
        return True
    limits, devices = pipeline.limits, sum(part.replicas for part in parts)
    return (
        limits.stages in (0, len(parts))
        and (not limits.all_devices or devices == problem.count.sum())
        and (not limits.equal or len({part.replicas for part in parts}) <= 1)
        and all(_is_sized(pipeline, part) and _is_pinned(pipeline, part) for part in parts)
        and (not limits.neighbours or _is_line(problem, pipeline, part_numbers(parts, problem.n)))
    )


def _is_sized(pipeline: Pipeline, part: Part) -> bool:
    """Whether the part has neither too few nor too many nodes and layers."""
    limits = pipeline.limits
    nodes = int(pipeline.nodes[part.nodes].sum())
    layers = len({layer for v in part.nodes.tolist() for layer in pipeline.layers.row(v).tolist()})
    return limits.nodes[0] <= nodes <= limits.nodes[1] and limits.layers[0] <= layers <= limits.layers[1]


def _is_pinned(pipeline: Pipeline, part: Part) -> bool:
    """Whether the part can include every device that one of its supernodes is pinned to."""
    wanted = {index for v in part.nodes.tolist() for index in pipeline.pinned.row(v).tolist()}
    return len(wanted) <= part.replicas and (not part.devices or wanted <= set(part.devices))


def _is_line(problem: Problem, pipeline: Pipeline, number: Ints) -> bool:
    """Whether edges join only neighbouring parts: of a chain in its order, of other splits in some line."""
    ends = number[pipeline.adjacent.owners()], number[pipeline.adjacent.items]
    if problem.ordered:
        return bool((np.abs(ends[0] - ends[1]) <= 1).all())
    lines: nx.Graph[int] = nx.Graph()
    lines.add_nodes_from(number.tolist())
    lines.add_edges_from((u, v) for u, v in np.stack(ends, axis=1).tolist() if u != v)
    return max(degree for _, degree in lines.degree) <= 2 and nx.is_forest(lines)


def is_hopeless(problem: Problem) -> bool:
    """Whether there are too few supernodes or devices for the number of parts that the limits demand."""
    limits, devices = problem.limits, int(problem.count.sum())
    wanted = {limits.stages} | ({devices} if limits.all_devices else set())
    return max(wanted) > min(problem.n, devices) or len(wanted - {0}) > 1
