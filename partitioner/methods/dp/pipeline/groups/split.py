"""Kinds of devices divided by group, so that all devices of a kind have the same links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.method import Outcome, Part
from partitioner.problem.arrays import Ints, rows_of
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

    It is -1 for a supernode that is not pinned, and -2 for one that is pinned to several groups: a is
    in one group, so such a supernode has no place.
    """
    pinned, held = problem.pipeline.pinned, problem.pipeline.held
    own_kind = problem.allowed.argmax(axis=0)
    home = np.full(problem.n, -1)
    for v, index in zip(pinned.owners().tolist(), pinned.items.tolist(), strict=True):
        group = int(np.searchsorted(np.cumsum(held[:, own_kind[v]]), index, side="right"))
        home[v] = group if home[v] in (-1, group) else -2
    return home
