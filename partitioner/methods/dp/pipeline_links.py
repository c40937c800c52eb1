"""Pipelines over links of unequal speed: levels of devices, or explicit groups with a link for each pair.

Tables hold pipelines of a narrower form: over levels they visit the groups one after the other, and over
explicit groups the devices of each stage are in one group. Kinds are divided by explicit group, so that all
devices of a kind have the same links. A bound for pipelines on any devices is that of the problem on the
fastest links. Example: two stages of time 1 in two groups with slowdown 3, and a tensor of cost 1 between:
both loads are 1 + 3, and the bound on equal links is 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.equal_replicas import EqualReplicas, asks_for_equal, numbers_of, with_replicas
from partitioner.methods.dp.levels_model import among
from partitioner.methods.dp.pipeline import EFFORT, best_pipeline
from partitioner.methods.dp.pipeline_loads import least_value, pipeline_value
from partitioner.methods.dp.pipeline_tables import unknown_factors
from partitioner.methods.dp.sparse_tables import has_many_states
from partitioner.methods.dp.stages import relax_memory
from partitioner.methods.expand import pinned_devices
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.arrays import Ints, rows_of
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.variants import PipelineProblem

ACROSS = (
    "its stages have devices in several groups; the lower bound takes all links to be as fast as the fastest"
)
NONE_OF_THE_FORM = "no pipeline of the form that is searched obeys the limits; others are not ruled out"
UNKNOWN_ENDS = (
    "the lower bound takes tensors that may pass over a stage to travel on the fastest link of their group"
)


def solve_pipeline(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Find the best pipeline over equal links, levels or explicit groups: method ``pipeline``."""
    if asks_for_equal(problem):
        choices = (with_replicas(problem, count) for count in numbers_of(problem))
        outcome = EqualReplicas(_over_links, _least_value).best(problem, choices, settings)
    else:
        outcome = _over_links(problem, settings)
    return among_groups(outcome) if len(problem.pipeline.link) else among(outcome)


def _least_value(problem: PipelineProblem) -> float:
    return least_value(problem, relax_memory(problem))


def _over_links(problem: PipelineProblem, settings: Settings) -> Outcome:
    if len(problem.pipeline.link):
        return _over_groups(problem, settings)
    if len(problem.pipeline.slowdown):
        return _over_levels(problem, settings)
    return best_pipeline(problem, settings)


def solve_within_groups(problem: PipelineProblem, settings: Settings, known: float = 0.0) -> Outcome:
    """Find the best pipeline of the form that tables hold, which over levels and groups is a narrower one.

    Over explicit groups the devices of each stage are in one group. Over levels a pipeline visits the groups
    one after the other, each stage in a group or on all devices of its kind in whole groups. Bound and proof
    hold for this form; `known` is a lower bound on its values.
    """
    if not len(problem.pipeline.link):
        return best_pipeline(problem, settings, known=known)
    split = by_group(problem)
    return split.joined(best_pipeline(split.problem, replace(settings, incumbent=None), known=known))


def _over_levels(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Return the best pipeline that visits the groups one after the other, or a better one on any devices.

    The problem on equal links is solved if the first pipeline is not proven to be the best on any devices.
    """
    found = solve_within_groups(problem, settings)
    if found.parts is not None and meets(found.statistics.get(ANY_DEVICES, found.bound), found.value):
        return found
    flat = on_fastest_links(problem)
    return on_any_devices(problem, settings, found, _flat_outcome(flat, settings), flat)


def _over_groups(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Return the best pipeline over explicit groups, each stage of which is in one group, or a better one.

    The problem on the fastest links comes first; its bound holds for pipelines on any devices.
    """
    flat = on_fastest_links(problem)
    many = has_many_states(by_group(problem).problem)
    early = _relaxed_outcome(flat) if many else _flat_outcome(flat, settings)
    if early.infeasible:
        return no_split(problem)
    found = solve_within_groups(problem, settings, early.bound)
    if problem.pipeline.replicas == 1:  # every pipeline is of the form
        return found
    if found.parts is None and early.parts is None:
        early = _flat_outcome(flat, settings)
    return on_any_devices(problem, settings, found, early, flat)


def _flat_outcome(flat: PipelineProblem, settings: Settings) -> Outcome:
    """Return the best pipeline on the fastest links, found in a part of the time."""
    left = settings.seconds_left
    early = settings if left is None else settings.within(EFFORT.flat_share * left)
    return best_pipeline(flat, replace(early, incumbent=None))


def _relaxed_outcome(flat: PipelineProblem) -> Outcome:
    """Return a bound on the pipelines on the fastest links that takes no search."""
    bound = least_value(flat, relax(flat))
    return no_split(flat) if np.isinf(bound) else Outcome(flat, None, np.inf, bound, "heuristic")


def on_any_devices(
    problem: PipelineProblem, settings: Settings, narrow: Outcome, flat: Outcome, equal: PipelineProblem
) -> Outcome:
    """Return the better one of two outcomes, with a bound for pipelines on any devices.

    Parameters
    ----------
    problem, settings
        The problem and the settings of the run.
    narrow
        The best pipeline of the form that tables over levels or groups hold.
    flat, equal
        The best pipeline on the fastest links, and the problem on these.
    """
    if flat.infeasible:
        return no_split(problem)
    wide = max(flat.bound, narrow.statistics.get(ANY_DEVICES, 0.0))
    value = narrow.value if narrow.parts is not None else np.inf
    whole, stages = _on_real_links(problem, flat, equal)
    found = np.inf if stages is None else pipeline_value(whole, stages)
    if stages is not None and found < value and not meets(found, value):
        bound = min(wide, found)
        notes: tuple[str, ...] = () if meets(bound, found) else (ACROSS,)
        figures = {**narrow.statistics, ANY_DEVICES: bound}
        return Outcome(
            whole, stages, found, bound, settings.ended(bound, found), notes=notes, statistics=figures
        )
    if narrow.parts is None:
        notes = (*narrow.notes, NONE_OF_THE_FORM) if narrow.infeasible else narrow.notes
        return replace(narrow, bound=wide, infeasible=False, stop_reason=settings.stop_reason, notes=notes)
    return replace(narrow, statistics={**narrow.statistics, ANY_DEVICES: min(wide, narrow.bound)})


def _on_real_links(
    problem: PipelineProblem, flat: Outcome, equal: PipelineProblem
) -> tuple[PipelineProblem, list[Part] | None]:
    """Return the problem that the flat pipeline is of, and its stages on the best devices found for them."""
    while flat.problem is not equal and equal.coarser is not None and problem.coarser is not None:
        equal, problem = equal.coarser, problem.coarser
    if flat.parts is None or flat.problem is not equal:
        return problem, None
    choices = [_on(devices, flat.parts) for devices in _choices(problem, flat.parts)]
    return problem, min(choices, key=lambda stages: pipeline_value(problem, stages))


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
            groups = group_of(problem, kind)
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


def group_of(problem: PipelineProblem, kind: int) -> Ints:
    """Return the smallest group of every device of a kind, shape (count,)."""
    pipeline, index = problem.pipeline, np.arange(int(problem.count[kind]))
    if len(pipeline.link):
        return np.asarray(np.searchsorted(np.cumsum(pipeline.held[:, kind]), index, side="right"))
    return np.asarray(index // max(1, int(pipeline.group[0, kind])))


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
        message=pipeline.message[kind],
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
