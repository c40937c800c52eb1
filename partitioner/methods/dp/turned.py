"""Other forms of a problem that have its chains.

The turned problem has every precedence reversed, so that stages are placed from the last to the first. In
the merged one, kinds of devices that differ in their names only are one kind: tables have fewer states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from partitioner.methods.method import Outcome, Part, Settings
from partitioner.problem.arrays import Ints, Rows, rows_of
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.problem import Nets
from partitioner.problem.variants import ChainProblem, PipelineProblem

AnyChain = TypeVar("AnyChain", bound=ChainProblem)


def turned(problem: PipelineProblem) -> PipelineProblem:
    """Return the problem with every edge of precedence reversed, as :func:`turned_chain` does."""
    return replace(
        turned_chain(problem),
        pipeline=_turned_pipeline(problem.pipeline),
        relaxed_pipeline=problem.relaxed_pipeline and _turned_pipeline(problem.relaxed_pipeline),
    )


def turned_chain(problem: AnyChain) -> AnyChain:
    """Return the problem with every edge of precedence reversed; supernode v becomes n - 1 - v.

    Its chains are those of the problem with the last stage first. Its `coarser` is None.
    """
    last = problem.n - 1
    return replace(
        problem,
        time=problem.time[:, :, ::-1].copy(),
        size=problem.size[::-1].copy(),
        allowed=problem.allowed[:, ::-1].copy(),
        successors=_turned_rows(problem.predecessors),
        predecessors=_turned_rows(problem.successors),
        nets=_turned_nets(problem.nets, problem.n),
        member=last - problem.member,
        relaxed_size=problem.relaxed_size[::-1].copy(),
        relaxed_allowed=problem.relaxed_allowed[:, ::-1].copy(),
        coarser=None,
        output=problem.output[::-1].copy(),
    )


def turned_stages(stages: Sequence[Part], n: int) -> list[Part]:
    """Return stages of a problem of `n` supernodes as those of the turned problem, or the reverse."""
    return [replace(part, nodes=n - 1 - part.nodes[::-1]) for part in stages[::-1]]


def _turned_pipeline(pipeline: Pipeline) -> Pipeline:
    return replace(
        pipeline,
        weights=pipeline.weights[::-1].copy(),
        divided=pipeline.divided[::-1].copy(),
        parameters=pipeline.parameters[::-1].copy(),
        activations=pipeline.activations[::-1].copy(),
        workspace=pipeline.workspace[::-1].copy(),
        nodes=pipeline.nodes[::-1].copy(),
        layers=_reversed_rows(pipeline.layers),
        pinned=_reversed_rows(pipeline.pinned),
        adjacent=_turned_rows(pipeline.adjacent),
    )


def _turned_nets(nets: Nets, n: int) -> Nets:
    owner, pin = nets.pins.owners(), n - 1 - nets.pins.items
    ascending = np.lexsort((pin, owner))
    return Nets(
        pins=Rows(nets.pins.start, pin[ascending]),
        of_node=_reversed_rows(nets.of_node),
        cost=nets.cost,
        source=n - 1 - nets.source,
        made=nets.made,
        read=nets.read[ascending],
    )


def _turned_rows(rows: Rows) -> Rows:
    """Return rows over supernodes of supernodes, both with their new numbers, ascending."""
    count = len(rows.start) - 1
    owner, item = count - 1 - rows.owners(), count - 1 - rows.items
    return _sorted_rows(owner, item, count)


def _reversed_rows(rows: Rows) -> Rows:
    """Return rows over supernodes, with the new numbers of these."""
    count = len(rows.start) - 1
    return rows_of(count - 1 - rows.owners(), rows.items, count)


def _sorted_rows(owner: Ints, item: Ints, count: int) -> Rows:
    ascending = np.lexsort((item, owner))
    return rows_of(owner[ascending], item[ascending], count)


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
