"""Pipelines over links of unequal speed: levels of devices, or explicit groups with a link for each pair.

The dynamic program is asked for the best pipeline of up to three forms of the problem, one after the other:

    narrow    those that its tables hold: over levels pipelines that visit the groups one after the other,
              over explicit groups those whose stages have their devices in one group each
    fastest   all pipelines, on links that are as fast as the fastest: a bound for any devices, and stages
              that are then priced on the real links
    any       all pipelines, where devices are few

For the last, a stage that has c_g devices in each group g is on a kind of its own if it has devices in
several groups; it uses c_g devices of the kind in group g. Sets of groups take the place of explicit groups:

    load(S, c) = work(S) / r + (r - 1) / r * weights(S) * link(A, A) / bandwidth,   r = sum of c_g
    link(A, B) = max over g in A, h in B of link(g, h),   A = {g: c_g > 0}

Example: two stages of time 1 in two groups with slowdown 3, and a tensor of cost 1 between: both loads are
1 + 3, and the bound on equal links is 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from partitioner.methods.dp.equal_replicas import EqualReplicas, asks_for_equal, numbers_of
from partitioner.methods.dp.forms import (
    Form,
    SplitKinds,
    by_group,
    fields_on_kinds,
    on_fastest_links,
    with_pipelines,
    with_replicas,
    within_groups,
)
from partitioner.methods.dp.levels_model import layout_of
from partitioner.methods.dp.pipeline import EFFORT as PIPELINE_EFFORT
from partitioner.methods.dp.pipeline import best_in_form, bounded, has_many_states, least_value_of
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.expand import pinned_devices
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.variants import PipelineProblem

ACROSS = (
    "its stages have devices in several groups; the lower bound takes all links to be as fast as the fastest"
)
NONE_OF_THE_FORM = "no pipeline of the form that is searched obeys the limits; others are not ruled out"
UNKNOWN_ENDS = (
    "the lower bound takes tensors that may pass over a stage to travel on the fastest link of their group"
)
IN_ONE_GROUP = "pipelines in which the devices of each stage are in one group"
GROUP_BY_GROUP = (
    "pipelines that visit the groups of devices one after the other, each stage inside a group or on all "
    "devices of its kind in whole groups, whose other devices stay idle then"
)


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


def solve_pipeline(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Find the best pipeline over equal links, levels or explicit groups: method ``pipeline``."""
    if not asks_for_equal(problem):
        outcome = _over_links(problem, settings)
    else:
        choices = (with_replicas(problem, count) for count in numbers_of(problem))
        outcome = EqualReplicas(_over_links, least_value_of).best(problem, choices, settings)
    return _with_notes(outcome, problem)


def _over_links(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Return the best pipeline of the narrow form, or a better one on any devices.

    Over groups the form on the fastest links comes first, for its bound; where tables are large, a bound that
    takes no search will do. Over levels that form is solved only if the best pipeline of the narrow one is
    not proven to be the best on any devices.
    """
    narrow, fastest = within_groups(problem), on_fastest_links(problem)
    flat = None
    if len(problem.pipeline.link) and has_many_states(narrow.problem):
        flat = bounded(fastest)
    elif len(problem.pipeline.link):
        flat = best_in_form(fastest, settings.for_share(PIPELINE_EFFORT.flat_share))
    if flat is not None and flat.infeasible:
        return no_split(problem)
    found = best_in_form(narrow, settings, known=0.0 if flat is None else flat.bound)
    if _is_best_on_any_devices(problem, found):
        return found
    if flat is None or (found.parts is None and flat.parts is None):
        flat = best_in_form(fastest, settings.for_share(PIPELINE_EFFORT.flat_share))
    found = _better_on_real_links(problem, settings, found, flat)
    return _best_on_any_devices(problem, settings, found)


def _is_best_on_any_devices(problem: PipelineProblem, narrow: Outcome) -> bool:
    """Whether it is proven that no pipeline on any devices is better than that of the form of tables."""
    pipeline = problem.pipeline
    if len(pipeline.link):
        return pipeline.replicas == 1  # every pipeline is of the form
    proven = narrow.parts is not None and meets(narrow.bound_on_any_devices, narrow.value)
    return proven or not len(pipeline.slowdown)


def _better_on_real_links(
    problem: PipelineProblem, settings: Settings, narrow: Outcome, flat: Outcome
) -> Outcome:
    """Return the better one of two outcomes, with a bound for pipelines on any devices.

    Parameters
    ----------
    problem, settings
        The problem and the settings of the run.
    narrow
        The best pipeline of the form that tables over levels or groups hold.
    flat
        The best pipeline on the fastest links, which is to be priced on the real ones.
    """
    if flat.infeasible:
        return no_split(problem)
    wide = max(flat.bound, narrow.statistics.get(ANY_DEVICES, 0.0))
    value = narrow.value if narrow.parts is not None else np.inf
    stages, found = _on_best_devices(flat)
    if stages is not None and found < value and not meets(found, value):
        bound = min(wide, found)
        notes: tuple[str, ...] = () if meets(bound, found) else (ACROSS,)
        figures = {**narrow.statistics, ANY_DEVICES: bound}
        return Outcome(
            flat.problem, stages, found, bound, settings.ended(bound, found), notes=notes, statistics=figures
        )
    if narrow.parts is None:
        notes = (*narrow.notes, NONE_OF_THE_FORM) if narrow.infeasible else narrow.notes
        return replace(narrow, bound=wide, infeasible=False, stop_reason=settings.stop_reason, notes=notes)
    return replace(narrow, statistics={**narrow.statistics, ANY_DEVICES: min(wide, narrow.bound)})


def _on_best_devices(flat: Outcome) -> tuple[list[Part] | None, float]:
    """Return the stages of an outcome on the best devices found for them, and their value there."""
    problem = flat.problem
    assert isinstance(problem, PipelineProblem)
    if flat.parts is None:
        return None, np.inf
    choices = [_on(devices, flat.parts) for devices in _choices(problem, flat.parts)]
    valued = [(pipeline_value(problem, stages), stages) for stages in choices]
    value, best = min(valued, key=lambda each: each[0])
    return best, value


def _on(devices: Sequence[Sequence[int]], parts: Sequence[Part]) -> list[Part]:
    return [replace(part, devices=tuple(own)) for part, own in zip(parts, devices, strict=True)]


def _choices(problem: PipelineProblem, parts: Sequence[Part]) -> Iterator[list[list[int]]]:
    """Yield the devices of every stage: one after the other, or in one group where there is room.

    For the second choice the stages take their devices in turn, or those with the most devices first.
    """
    order = list(range(len(parts)))
    large_first = sorted(order, key=lambda i: -parts[i].replicas)
    for turns, together in ((order, False), (order, True), (large_first, True)):
        chosen = [pinned_devices(problem, part) for part in parts]
        taken = {(part.kind, d) for part, own in zip(parts, chosen, strict=True) for d in own}
        for i in turns:
            kind = parts[i].kind
            free = [d for d in range(int(problem.count[kind])) if (kind, d) not in taken]
            groups = _group_of(problem, kind)
            more = parts[i].replicas - len(chosen[i])
            own = _together(free, groups, more) if together else free[:more]
            chosen[i] = [*chosen[i], *own]
            taken |= {(kind, d) for d in own}
        yield chosen


def _together(free: Sequence[int], group: Ints, count: int) -> list[int]:
    """Return free devices, of the smallest room in a group that suffices, else of the largest rooms."""
    room: dict[int, list[int]] = {}
    for d in free:
        room.setdefault(int(group[d]), []).append(d)
    fitting = [devices for devices in room.values() if len(devices) >= count]
    if fitting:
        return min(fitting, key=len)[:count]
    return [d for devices in sorted(room.values(), key=len, reverse=True) for d in devices][:count]


def _group_of(problem: PipelineProblem, kind: int) -> Ints:
    """Return the smallest group of every device of a kind, shape (count,)."""
    pipeline, index = problem.pipeline, np.arange(int(problem.count[kind]))
    if len(pipeline.link):
        return np.asarray(np.searchsorted(np.cumsum(pipeline.held[:, kind]), index, side="right"))
    return np.asarray(index // max(1, int(pipeline.group[0, kind])))


def _best_on_any_devices(problem: PipelineProblem, settings: Settings, found: Outcome) -> Outcome:
    """Return an outcome, or a better one, with a bound over all choices of devices.

    Where devices are in too many groups, or supernodes are pinned to devices, the outcome stays as it is.

    Parameters
    ----------
    problem, settings
        The problem over levels or explicit groups, and the settings of the run.
    found
        The best pipeline of a narrower form, with the bound for any devices among its statistics.
    """
    met = found.parts is not None and meets(found.bound_on_any_devices, found.value, settings.gap)
    spanning = None if settings.expired or met else _over_sets_of_groups(problem)
    if spanning is None:
        return found
    early = settings.for_share(EFFORT.share)
    early = replace(early, step_limit=min(settings.step_limit, EFFORT.steps))
    other = best_in_form(spanning, early, goes_on=False, known=found.bound_on_any_devices)
    if other.infeasible:
        return no_split(problem)
    value = found.value if found.parts is not None else np.inf
    best = other if other.value < value and not meets(other.value, value) else found
    wide = min(max(found.bound_on_any_devices, other.bound), best.value)
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


def _with_notes(outcome: Outcome, problem: PipelineProblem) -> Outcome:
    """Return the outcome, with notes on its bound: what leaves a gap, and of which pipelines it is.

    A bound for pipelines on any devices is among the statistics if it is another one.
    """
    grouped = len(problem.pipeline.link) > 0
    if grouped and outcome.parts is None:
        return outcome
    notes = outcome.notes
    if grouped and not meets(outcome.bound, outcome.value):
        notes = (*notes, UNKNOWN_ENDS)
    wide = outcome.bound_on_any_devices
    if not meets(wide, outcome.bound):
        proof = "optimal" if outcome.stop_reason == "optimal" else "the lower bound holds"
        among = f"{proof} among {IN_ONE_GROUP if grouped else GROUP_BY_GROUP}"
        notes = (*notes, f"{among}; for any other choice of devices the lower bound is {wide:.6g}")
    return replace(outcome, notes=notes)


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


def _over_sets_of_groups(problem: PipelineProblem) -> SetsOfGroups | None:
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
    size = split.problem.states * len(sets) ** 2 * (len(group) + len(spans))
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
