"""Segments inside one group: the ideals at which they may end, and their costs between two ideals."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.pipeline.arrays import PipelineTable
from partitioner.methods.dp.pipeline.levels.labels import End, Label, LabelOrigin
from partitioner.methods.dp.pipeline.levels.layout import in_group
from partitioner.methods.dp.pipeline.levels.prices import Prices, part_prices, spanning_prices
from partitioner.methods.dp.pipeline.levels.reached import Reached
from partitioner.methods.dp.pipeline.tables import stages_in
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats

Bounded = tuple[float, int]


def ends_in_group(reached: Reached, low: int, position: int, labels: list[Label]) -> list[Bounded]:
    """Return the ideals at which a segment may end, by a sweep with low prices for its far end.

    Each ideal comes with a bound on the value of pipelines with that end, in ascending order.
    """
    segments, stretch = reached.segments, reached.stretch
    border = min(segments.layout.end(stretch.level - 1, position), stretch.end)
    if border >= stretch.end:
        return [(reached.least(low, labels), stretch.high)]
    return (
        _ends_of_racks(reached, low, position) if stretch.level > 1 else _ends(reached, low, position, labels)
    )


def _ends_of_racks(reached: Reached, low: int, position: int) -> list[Bounded]:
    """Return all ideals from `low` to the end of the stretch whose rest may be within the limits."""
    segments = reached.segments
    wide = segments.above(low) & segments.below(reached.stretch.high)
    wide[low] = False
    inside = np.flatnonzero(wide)
    rest = segments.layout.groups - position - 1
    return [
        (0.0, ideal)
        for ideal in inside[~reached.target.hopeless(inside, np.zeros(len(inside)), rest)].tolist()
    ]


def _ends(reached: Reached, low: int, position: int, labels: list[Label]) -> list[Bounded]:
    segments, stretch, target = reached.segments, reached.stretch, reached.target
    table = segments.in_group(
        low, stretch.high, reached.opened(low, position, 1), far_end_cheap(reached, low),
        reached.behind(labels[0]), reached.least(low, labels), stretch.end - position - 1, target,
    )  # fmt: skip
    least = table.value[low : stretch.high + 1].min(axis=1)
    ideals = low + 1 + np.flatnonzero(least[1:] <= target.limit)
    groups = segments.layout.groups - position - 1
    ideals = ideals[~target.hopeless(ideals, least[ideals - low], groups)]
    crossing = spanning_prices(segments.problem.nets, stretch.prices, reached.within, reached.slowdown)
    heavy = segments.weights.too_heavy(segments.members, low, ideals, crossing, groups, target.threshold)
    ideals = ideals[~heavy]
    bound = (
        least[ideals - low]
        if target.after is None
        else np.maximum(least[ideals - low], target.after[groups, ideals])
    )
    return [
        each
        for each in sorted(zip(bound.tolist(), ideals.tolist(), strict=True))
        if not reached.beaten(each[1], position + 1, float(least[each[1] - low]))
    ]


def far_end_cheap(reached: Reached, low: int) -> Prices:
    """Return the prices of a segment from `low` on as if all later supernodes were in its group."""
    segments, stretch = reached.segments, reached.stretch
    share = segments.mask(low, stretch.high)
    return part_prices(segments.problem.nets, stretch.prices, reached.within, share, reached.slowdown)


def ways_in_group(reached: Reached, low: int, high: int, position: int, behind: int) -> list[End]:
    """Return the ends of segments that hold the supernodes between two ideals in one smallest group."""
    if not reached.at_home(low, high, position, position + 1):
        return []
    table = _table_between(reached, low, high, behind)
    space, found = reached.segments.space, list[End]()
    used = reached.segments.layout.size - space.free
    for state in np.flatnonzero(table.value[high] < np.inf).tolist():
        if reached.limits.all_devices and space.free[state].any():
            continue
        label = Label(1, int(used[state].sum()), _stages_counted(reached, state))
        found.append(End(label, float(table.value[high, state])))
    return [min(found, key=lambda end: end.value)] if reached.plain and found else found


def stages_in_group(reached: Reached, step: LabelOrigin, high: int, behind: int, wanted: Label) -> list[Part]:
    """Return the stages, with their devices, of the best segment with the wanted label."""
    segments = reached.segments
    table = _table_between(reached, step.ideal, high, behind)
    used = (segments.layout.size - segments.space.free).sum(axis=1)
    row: Floats = table.value[high].copy()
    for state in range(len(row)):
        full = not segments.space.free[state].any() or not reached.limits.all_devices
        label = Label(1, int(used[state]), _stages_counted(reached, state))
        if not full or not reached.same(label, wanted):
            row[state] = np.inf
    stages = stages_in(table, segments, high, int(row.argmin()), step.ideal)
    return in_group(segments.problem, segments.layout, stages, step.position)


def _stages_counted(reached: Reached, state: int) -> int:
    """Return the number of stages of a state of a group; 0 if the number is not limited."""
    if not reached.limits.stages:
        return 0
    states = reached.segments.space.states
    return state // states.hop if states.hop else int(states.behind[state])


def _table_between(reached: Reached, low: int, high: int, behind: int) -> PipelineTable:
    segments = reached.segments
    share = segments.mask(low, high)
    prices = part_prices(
        segments.problem.nets, reached.stretch.prices, reached.within, share, reached.slowdown
    )
    return segments.in_group(low, high, share, prices, behind, 0.0, 0, reached.target)
