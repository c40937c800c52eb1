"""Pipelines whose stages have any devices of a kind, in several groups too, and a bound for all of them.

The tables over levels and over explicit groups hold pipelines of a narrower form. On equal links it does not
matter which devices a stage has. The optimum on the fastest links therefore bounds every pipeline, and its
stages, on devices that are chosen afterwards, are a pipeline of the wider form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.dp.pipeline.loads import pipeline_value
from partitioner.methods.expand import pinned_devices
from partitioner.methods.method import ANY_DEVICES, Outcome, Part, Settings, meets, no_split
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import PipelineProblem

ACROSS = (
    "its stages have devices in several groups; the lower bound takes all links to be as fast as the fastest"
)
NONE_OF_THE_FORM = "no pipeline of the form that is searched obeys the limits; others are not ruled out"


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
