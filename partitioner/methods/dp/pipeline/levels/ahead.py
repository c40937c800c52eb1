"""A lower bound on the stages that follow a border between groups, with transfers over it at full price."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.pipeline.levels.inside import far_end_cheap
from partitioner.methods.dp.pipeline.levels.reached import Reached
from partitioner.methods.dp.pipeline.levels.spans import may_span


def looks_ahead(reached: Reached) -> bool:
    """Whether :func:`bound_ahead` is valid: only the largest load counts, and stages do not span groups."""
    target = reached.target
    return reached.plain and not (
        reached.tied or target.summed or target.outside is None or may_span(reached)
    )


def bound_ahead(reached: Reached, low: int, position: int) -> float:
    """Return the least largest load of all stages after an ideal at which the group at `position` begins.

    The stages of that group pay full prices for tensors of other groups, later ones pay as on equal links.
    The bound is infinity if no whole pipeline within the threshold has a border there.
    """
    segments, stretch, target = reached.segments, reached.stretch, reached.target
    assert target.outside is not None
    table = segments.in_group(
        low, stretch.high, reached.opened(low, position, 1), far_end_cheap(reached, low),
        0, 0.0, stretch.end - position - 1, target, low + 1,
    )  # fmt: skip
    value, least = table.value[low + 1 : stretch.high + 1], np.inf
    others = (segments.layout.groups - position - 1) * segments.layout.size
    for state, free in enumerate(segments.space.free):
        ends = np.flatnonzero(value[:, state] < least)
        rest = target.outside.least(low + 1 + ends, free + others)
        least = min(least, float(np.maximum(value[ends, state], rest).min(initial=np.inf)))
    return least
