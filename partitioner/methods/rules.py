"""Check of parts against the rules of the contracted problem."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from partitioner.methods.limits import keeps_limits
from partitioner.methods.method import Part, part_numbers
from partitioner.problem.arrays import Ints
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
