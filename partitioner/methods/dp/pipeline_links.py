"""Pipelines over links of unequal speed: levels of devices, or explicit groups with a link for each pair.

Tables hold pipelines of a narrower form: over levels they visit the groups one after the other, and over
explicit groups the devices of each stage are in one group. Kinds are divided by explicit group, so that all
devices of a kind have the same links. A bound for pipelines on any devices is that of the problem on the
fastest links; where it is not met and devices are few, :mod:`partitioner.methods.dp.any_groups` searches all
pipelines. Example: two stages of time 1 in two groups with slowdown 3, and a tensor of cost 1 between:
both loads are 1 + 3, and the bound on equal links is 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.any_groups import improved_on_any_devices
from partitioner.methods.dp.equal_replicas import EqualReplicas, asks_for_equal, numbers_of
from partitioner.methods.dp.forms import Form, by_group, on_fastest_links, with_replicas
from partitioner.methods.dp.pipeline import EFFORT, best_pipeline
from partitioner.methods.dp.pipeline_loads import least_value, pipeline_value
from partitioner.methods.dp.sparse_tables import has_many_states
from partitioner.methods.dp.stages import relax_memory
from partitioner.methods.expand import pinned_devices
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.arrays import Ints
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


def solve_pipeline(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Find the best pipeline over equal links, levels or explicit groups: method ``pipeline``."""
    if asks_for_equal(problem):
        choices = (with_replicas(problem, count) for count in numbers_of(problem))
        outcome = EqualReplicas(_over_links, _least_value).best(problem, choices, settings)
    else:
        outcome = _over_links(problem, settings)
    if not len(problem.pipeline.link):
        return _among(outcome, GROUP_BY_GROUP)
    return outcome if outcome.parts is None else _among(_on_unknown_ends(outcome), IN_ONE_GROUP)


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
    return split.outcome(best_pipeline(split.problem, replace(settings, incumbent=None), known=known))


def _over_levels(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Return the best pipeline that visits the groups one after the other, or a better one on any devices.

    The problem on equal links is solved if the first pipeline is not proven to be the best on any devices.
    """
    found = solve_within_groups(problem, settings)
    if found.parts is not None and meets(found.statistics.get(ANY_DEVICES, found.bound), found.value):
        return found
    flat = on_fastest_links(problem)
    found = on_any_devices(problem, settings, found, _flat_outcome(flat, settings), flat)
    return improved_on_any_devices(problem, settings, found)


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
    found = on_any_devices(problem, settings, found, early, flat)
    return improved_on_any_devices(problem, settings, found)


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
    whole = Form(problem, equal).of(flat).given
    if flat.parts is None:
        return whole, None
    choices = [_on(devices, flat.parts) for devices in _choices(whole, flat.parts)]
    return whole, min(choices, key=lambda stages: pipeline_value(whole, stages))


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


def _on_unknown_ends(outcome: Outcome) -> Outcome:
    """Return the outcome with a note if its bound leaves a gap."""
    if meets(outcome.bound, outcome.value):
        return outcome
    return replace(outcome, notes=(*outcome.notes, UNKNOWN_ENDS))


def _among(outcome: Outcome, pipelines: str) -> Outcome:
    """Return the outcome, with a note on the pipelines for which its bound holds if these are not all.

    A bound for pipelines on any devices is among the statistics if it is another one.
    """
    wide = outcome.statistics.get(ANY_DEVICES, outcome.bound)
    if meets(wide, outcome.bound):
        return outcome
    proof = "optimal" if outcome.stop_reason == "optimal" else "the lower bound holds"
    note = f"{proof} among {pipelines}; for any other choice of devices the lower bound is {wide:.6g}"
    return replace(outcome, notes=(*outcome.notes, note))
