"""Pipelines whose stages have any devices of a kind, in one group or in several, in any order.

A stage that has c_g devices in each group g is on a kind of its own if it has devices in several groups; it
uses c_g devices of the kind in group g. Sets of groups take the place of the groups of explicit groups:

    load(S, c) = work(S) / r + (r - 1) / r * weights(S) * link(A, A) / bandwidth,   r = sum of c_g
    link(A, B) = max over g in A, h in B of link(g, h),   A = {g: c_g > 0}

Two nodes of time 4 that share a kind with one device in each of two groups: {both} on the devices of both
groups has a load of 4, plus the exchange over the link between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from partitioner.methods.dp.forms import Form, SplitKinds, by_group, fields_on_kinds, with_pipelines
from partitioner.methods.dp.levels_model import layout_of
from partitioner.methods.dp.pipeline import best_pipeline
from partitioner.methods.dp.pipeline_tables import state_count
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.variants import PipelineProblem


@dataclass(frozen=True)
class AnyGroupsEffort:
    """How large the search may be.

    Parameters
    ----------
    table
        The most states of devices, times pairs of sets of groups, times kinds: eight devices in two or four
        groups, twelve in three.
    share
        The share of the time left.
    steps
        The most steps.
    """

    table: int = 1_500_000
    share: float = 0.5
    steps: int = 300_000_000


EFFORT = AnyGroupsEffort()


def improved_on_any_devices(problem: PipelineProblem, settings: Settings, found: Outcome) -> Outcome:
    """Return an outcome, or a better one, with a bound over all choices of devices.

    Where devices are in too many groups, or supernodes are pinned to devices, the outcome stays as it is.

    Parameters
    ----------
    problem, settings
        The problem over levels or explicit groups, and the settings of the run.
    found
        The best pipeline of a narrower form, with the bound for any devices among its statistics.
    """
    wide = found.statistics.get(ANY_DEVICES, found.bound)
    if settings.expired or (found.parts is not None and meets(wide, found.value, settings.gap)):
        return found
    spanning = over_sets_of_groups(problem)
    if spanning is None:
        return found
    left = settings.seconds_left
    early = settings if left is None else settings.within(EFFORT.share * left)
    early = replace(early, incumbent=None, step_limit=min(settings.step_limit, EFFORT.steps))
    other = spanning.outcome(best_pipeline(spanning.problem, early, goes_on=False, known=wide))
    if other.infeasible:
        return no_split(problem)
    value = found.value if found.parts is not None else np.inf
    best = other if other.value < value and not meets(other.value, value) else found
    wide = min(max(wide, other.bound), best.value)
    if best.parts is None:
        return replace(found, bound=wide, statistics={**found.statistics, ANY_DEVICES: wide})
    bound = wide if best is other else max(wide, found.bound)
    return replace(
        best,
        bound=bound,
        stop_reason=settings.ended(bound, best.value),
        notes=other.notes if wide >= bound else found.notes,
        statistics={**found.statistics, **other.statistics, ANY_DEVICES: wide},
    )


@dataclass(frozen=True, eq=False)
class SetsOfGroups(Form[PipelineProblem]):
    """A problem whose kinds are divided by group, with further kinds for stages that have devices in several.

    Parameters
    ----------
    split
        The problem with its kinds divided by group.
    """

    split: SplitKinds

    def stages(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts with their devices, the first free ones of each group."""
        free, named, spans = self.split.first.copy(), [], self.problem.spans
        real = len(free)
        for part in parts:
            taken = np.zeros(real, dtype=np.int64)
            if part.kind < real:
                taken[part.kind] = part.replicas
            else:
                taken = spans[part.kind - real]
            devices = tuple(int(free[j] + i) for j in np.flatnonzero(taken) for i in range(taken[j]))
            free += taken
            kind = int(self.split.kind[np.flatnonzero(taken)[0]])
            named.append(replace(part, kind=kind, devices=devices))
        return named


def over_sets_of_groups(problem: PipelineProblem) -> SetsOfGroups | None:
    """Return the problem with a kind for each set of devices in several groups; None if they are too many."""
    grouped = _with_explicit_groups(problem)
    if len(grouped.pipeline.pinned.items):
        return None
    split = by_group(grouped)
    group = split.problem.pipeline.held.argmax(axis=0)
    spans = _spans(split)
    if spans is None:
        return None
    sets = [frozenset([g]) for g in range(len(grouped.pipeline.held))]
    found = [frozenset(group[row > 0].tolist()) for row in spans]
    sets += sorted(set(found), key=sorted)
    size = state_count(split.problem) * len(sets) ** 2 * (len(group) + len(spans))
    if size > EFFORT.table:
        return None
    at = np.array([*group, *(sets.index(each) for each in found)])
    link = np.array([[_slowest(grouped.pipeline.link, a, b) for b in sets] for a in sets])
    return SetsOfGroups(problem, _spanning(split.problem, spans, at, link), split)


def _slowest(link: Floats, one: frozenset[int], other: frozenset[int]) -> float:
    return float(link[np.ix_(sorted(one), sorted(other))].max())


def _spans(split: SplitKinds) -> Ints | None:
    """Return the devices in each group of stages that have some in several groups, shape (P, kinds).

    None if they are too many to list.
    """
    problem, rows = split.problem, [np.zeros((0, len(split.kind)), dtype=np.int64)]
    most, fewest = problem.pipeline.replicas, problem.pipeline.fewest
    for kind in np.unique(split.kind):
        own = np.flatnonzero(split.kind == kind)
        count = np.minimum(problem.count[own], most)
        if float(np.prod(count + 1.0)) > EFFORT.table:
            return None
        taken = np.array(list(product(*(range(c + 1) for c in count))), dtype=np.int64)
        total = taken.sum(axis=1)
        taken = taken[((taken > 0).sum(axis=1) > 1) & (total <= most) & (total >= fewest)]
        row = np.zeros((len(taken), len(split.kind)), dtype=np.int64)
        row[:, own] = taken
        rows.append(row)
    return np.vstack(rows)


def _spanning(problem: PipelineProblem, spans: Ints, at: Ints, link: Floats) -> PipelineProblem:
    """Return a problem, and what it is contracted to, with the kinds of stages in several groups.

    Parameters
    ----------
    problem
        The problem whose kinds are in one group each.
    spans
        The devices that a stage on each further kind has.
    at, link
        The number of the set of groups of every kind, and the links between these sets.
    """
    base = np.concatenate((np.arange(len(problem.count)), spans.argmax(axis=1)))

    def spanning(whole: PipelineProblem) -> dict[str, Any]:
        count = np.concatenate((whole.count, np.zeros(len(spans), dtype=np.int64)))
        return fields_on_kinds(whole, base, count)

    def pipeline(whole: PipelineProblem, given: Pipeline) -> Pipeline:
        held = np.zeros((len(link), len(base)), dtype=np.int64)
        held[at, np.arange(len(base))] = np.concatenate((whole.count, spans.sum(axis=1)))
        return replace(
            given,
            held=held,
            link=link,
            bandwidth=given.bandwidth[base],
            message=given.message[base],
            group=given.group[:, base],
            spans=spans,
        )

    return with_pipelines(problem, pipeline, spanning)


def _with_explicit_groups(problem: PipelineProblem) -> PipelineProblem:
    """Return the problem with the groups of the smallest level as explicit groups."""
    if len(problem.pipeline.link):
        return problem
    layout = layout_of(problem)
    number = np.arange(layout.groups)
    link = np.ones((layout.groups, layout.groups))
    for span, slowdown in zip(layout.spans[:-1], layout.slowdown, strict=True):
        link[number[:, None] // span != number // span] = slowdown
    held = np.tile(layout.size, (layout.groups, 1))
    return with_pipelines(
        problem,
        lambda _, given: replace(
            given, held=held, link=link, group=given.group[:0], slowdown=given.slowdown[:0]
        ),
    )
