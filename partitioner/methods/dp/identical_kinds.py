"""Kinds of devices that differ in their names only, as one kind: tables and searches have fewer states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.method import Outcome, Part, Settings
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import ChainProblem


def with_merged_kinds(
    solve: Callable[[ChainProblem, Settings], Outcome], problem: ChainProblem, settings: Settings
) -> Outcome:
    """Return the outcome of a method that is given identical kinds as one, with parts on the given kinds."""
    group = identical_kinds(problem)
    if len(np.unique(group)) == len(group):
        return solve(problem, settings)
    merged = merged_kinds(problem, group)
    incumbent = settings.incumbent and [
        replace(part, kind=int(group[part.kind])) for part in settings.incumbent
    ]
    outcome = solve(merged, replace(settings, incumbent=incumbent))
    given = problem if outcome.problem is merged or problem.coarser is None else problem.coarser
    parts = None if outcome.parts is None else split_kinds(outcome.parts, group, problem.count)
    return replace(outcome, problem=given, parts=parts)


def identical_kinds(problem: ChainProblem) -> Ints:
    """Return a class for each kind: times, memory, transfers and what may run there are equal in a class."""
    numbers: dict[bytes, int] = {}
    found = []
    for k in range(len(problem.count)):
        figures = np.array([problem.memory[k], problem.transfer_factor[k]])
        rows = problem.time[k], problem.allowed[k], problem.relaxed_allowed[k], figures
        found.append(numbers.setdefault(b"".join(row.tobytes() for row in rows), len(numbers)))
    return np.array(found, dtype=np.int64)


def merged_kinds(problem: ChainProblem, group: Ints) -> ChainProblem:
    """Return the problem with one kind for each class, which has the devices of all its kinds."""
    first = np.unique(group, return_index=True)[1]
    return replace(
        problem,
        time=problem.time[first],
        allowed=problem.allowed[first],
        relaxed_allowed=problem.relaxed_allowed[first],
        memory=problem.memory[first],
        transfer_factor=problem.transfer_factor[first],
        count=np.bincount(group, problem.count).astype(np.int64),
        coarser=problem.coarser and merged_kinds(problem.coarser, group),
    )


def split_kinds(parts: Sequence[Part], group: Ints, count: Ints) -> list[Part]:
    """Return the parts on the kinds of each class, which take as many as they have devices, in their order.

    Examples
    --------
    >>> parts = [Part(0, np.array([v])) for v in range(3)]
    >>> [part.kind for part in split_kinds(parts, np.array([0, 1, 0]), np.array([1, 5, 2]))]
    [0, 2, 2]
    """
    left, found = count.copy(), []
    for part in parts:
        kind = int(np.flatnonzero((group == part.kind) & (left > 0))[0])
        left[kind] -= 1
        found.append(replace(part, kind=kind))
    return found
