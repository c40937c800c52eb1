"""Explicit groups of devices, any two of which have a link of their own.

Kinds are divided by group, so that all devices of a kind have the same links; a table then has a value for
each pair of the groups of the last stage and of the next one. Where a tensor may pass over stages the table
gives no exact values: bounds take the fastest links, plans the slowest ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.dp.linear import LinearSearch
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.dp.pipeline_tables import LowerGroupTables, unknown_factors
from partitioner.methods.dp.sparse_tables import LowerSparseTables, can_do_without
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, meets
from partitioner.problem.arrays import Ints, rows_of
from partitioner.problem.measure import Measure
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.variants import PipelineProblem


@dataclass(frozen=True, eq=False)
class SplitKinds:
    """A problem whose kinds are divided by explicit group.

    Parameters
    ----------
    whole, problem
        The problem with the user's kinds, and the one with a kind for each group that has devices of it.
    kind, first
        Shape (K',): the user's kind of each kind, and the number of its first device among those of the
        user's kind.
    """

    whole: PipelineProblem
    problem: PipelineProblem
    kind: Ints
    first: Ints

    def joined(self, outcome: Outcome) -> Outcome:
        """Return an outcome of the divided problem as one of the whole one; its parts name their devices."""
        part, whole = self.problem, self.whole
        while outcome.problem is not part:
            assert part.coarser is not None and whole.coarser is not None
            part, whole = part.coarser, whole.coarser
        parts = None if outcome.parts is None else self._named(part, list(outcome.parts))
        return replace(outcome, problem=whole, parts=parts)

    def _named(self, problem: PipelineProblem, parts: list[Part]) -> list[Part]:
        """Return the parts with their devices: those of pinned supernodes, then the first free ones."""
        pinned = problem.pipeline.pinned
        fixed = [sorted({int(i) for v in part.nodes for i in pinned.row(v)}) for part in parts]
        taken = {(part.kind, i) for part, own in zip(parts, fixed, strict=True) for i in own}
        named = []
        for part, own in zip(parts, fixed, strict=True):
            room = range(int(self.problem.count[part.kind]))
            free = [i for i in room if (part.kind, i) not in taken][: part.replicas - len(own)]
            taken |= {(part.kind, i) for i in free}
            devices = tuple(int(self.first[part.kind]) + i for i in (*own, *free))
            named.append(replace(part, kind=int(self.kind[part.kind]), devices=devices))
        return named


def by_group(problem: PipelineProblem) -> SplitKinds:
    """Return a problem with explicit groups with a kind for each group and kind in it."""
    held = problem.pipeline.held
    group, kind = np.nonzero(held)
    first = (np.cumsum(held, axis=0) - held)[group, kind]
    return SplitKinds(problem, _divided(problem, group, kind, first), kind, first)


def _divided(problem: PipelineProblem, group: Ints, kind: Ints, first: Ints) -> PipelineProblem:
    """Return the problem, and what it is contracted to, with kinds that are in one group each."""
    home = _home(problem)
    here = (home[None, :] == -1) | (home[None, :] == group[:, None])
    coarser, light = problem.coarser, problem.relaxed_pipeline
    return replace(
        problem,
        time=problem.time[kind],
        allowed=problem.allowed[kind] & here,
        relaxed_allowed=problem.relaxed_allowed[kind] & (here | (not problem.lossless)),
        count=problem.pipeline.held[group, kind],
        memory=problem.memory[kind],
        transfer_factor=problem.transfer_factor[kind],
        pipeline=_divided_pipeline(problem, problem.pipeline, group, kind, first),
        relaxed_pipeline=light and _divided_pipeline(problem, light, group, kind, first),
        coarser=None if coarser is None else _divided(coarser, group, kind, first),
    )


def _divided_pipeline(
    problem: PipelineProblem, pipeline: Pipeline, group: Ints, kind: Ints, first: Ints
) -> Pipeline:
    held = np.zeros((len(pipeline.held), len(kind)), dtype=np.int64)
    held[group, np.arange(len(kind))] = pipeline.held[group, kind]
    pinned, home = pipeline.pinned, _home(problem)
    owner, own_kind = pinned.owners(), problem.allowed.argmax(axis=0)
    begins = {(g, k): f for g, k, f in zip(group.tolist(), kind.tolist(), first.tolist(), strict=True)}
    shift = [begins.get((int(home[v]), int(own_kind[v])), 0) for v in owner]
    items = pinned.items - np.array(shift, dtype=np.int64)
    return replace(
        pipeline,
        held=held,
        bandwidth=pipeline.bandwidth[kind],
        group=pipeline.group[:, kind],
        pinned=rows_of(owner, items, len(pinned.start) - 1),
    )


def _home(problem: PipelineProblem) -> Ints:
    """Return the group of the devices that each supernode is pinned to, shape (n,).

    It is -1 for a supernode that is not pinned, and -2 for one that is pinned to several groups: a stage
    of one group cannot hold it.
    """
    pinned, held = problem.pipeline.pinned, problem.pipeline.held
    own_kind = problem.allowed.argmax(axis=0)
    home = np.full(problem.n, -1)
    for v, index in zip(pinned.owners().tolist(), pinned.items.tolist(), strict=True):
        group = int(np.searchsorted(np.cumsum(held[:, own_kind[v]]), index, side="right"))
        home[v] = group if home[v] in (-1, group) else -2
    return home


def on_fastest_links(problem: PipelineProblem) -> PipelineProblem:
    """Return the problem without groups or levels, in which no pipeline costs more, whatever its devices."""
    fastest = float(unknown_factors(problem)[0].min()) if len(problem.pipeline.link) else 1.0
    return _without_groups(problem, fastest)


def _without_groups(problem: PipelineProblem, fastest: float) -> PipelineProblem:
    light, coarser = problem.relaxed_pipeline, problem.coarser
    return replace(
        problem,
        nets=problem.nets._replace(cost=problem.nets.cost * fastest),
        pipeline=_linked(problem.pipeline, fastest),
        relaxed_pipeline=light and _linked(light, fastest),
        coarser=None if coarser is None else _without_groups(coarser, fastest),
    )


def _linked(pipeline: Pipeline, fastest: float) -> Pipeline:
    none = np.zeros((0, 0))
    return replace(
        pipeline,
        held=none.astype(np.int64),
        link=none,
        group=pipeline.group[:0],
        slowdown=pipeline.slowdown[:0],
        bandwidth=pipeline.bandwidth / fastest,
    )


UNKNOWN_ENDS = (
    "the lower bound takes tensors that may pass over a stage to travel on the fastest link of their group"
)


def on_unknown_ends(outcome: Outcome) -> Outcome:
    """Return the outcome with a note if its bound leaves a gap."""
    if outcome.parts is None or meets(outcome.bound, outcome.value):
        return outcome
    return replace(outcome, notes=(*outcome.notes, UNKNOWN_ENDS))


def among_groups(outcome: Outcome) -> Outcome:
    """Return the outcome with notes: on a gap, and on the pipelines for which its bound holds if not all.

    Parameters
    ----------
    outcome
        The best pipeline whose stages each have their devices in one group, with the bound for pipelines on
        any devices among its statistics.
    """
    wide = outcome.statistics.get(ANY_DEVICES, outcome.bound)
    outcome = on_unknown_ends(outcome)
    if outcome.parts is None or meets(wide, outcome.bound):
        return outcome
    proof = "optimal" if outcome.stop_reason == "optimal" else "the lower bound holds"
    note = (
        f"{proof} among pipelines in which the devices of each stage are in one group; for any other choice "
        f"of devices the lower bound is {wide:.6g}"
    )
    return replace(outcome, notes=(*outcome.notes, note))


Known = tuple[Sequence[Part] | None, float, float]


def bracket_below(
    linear: LinearSearch[PipelineProblem], lattice: Lattice, stages: Sequence[Part] | None, value: float
) -> Known:
    """Return the best pipeline known, its value, and a lower bound on all pipelines of the lattice.

    For a batch the bound is that of the fastest links.

    Parameters
    ----------
    linear, lattice
        The problem with its bound, and the lattice of its ideals.
    stages, value
        The best pipeline so far.
    """
    problem = linear.problem
    if problem.measure is Measure.BATCH:
        return stages, value, linear.bound
    lower = LowerSparseTables if can_do_without(problem) else LowerGroupTables
    tables = lower(problem.relaxed(), linear.relaxation, lattice)
    below = linear.model.bracket(tables, linear.settings, linear.bound, value)
    below.narrow(from_top=np.isfinite(value))
    if below.stages is not None and problem.lossless:
        found = pipeline_value(problem, below.stages)
        if found < value:
            stages, value = below.stages, found
    return stages, value, min(below.bound, value)
