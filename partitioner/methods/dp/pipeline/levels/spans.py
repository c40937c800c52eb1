"""Stages over several whole groups, which continue a chain of segments."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.pipeline.arrays import PipelineTable
from partitioner.methods.dp.pipeline.levels.labels import End, Label, LabelOrigin
from partitioner.methods.dp.pipeline.levels.prices import spanning_prices
from partitioner.methods.dp.pipeline.levels.reached import Reached


def span_groups(reached: Reached, low: int, position: int, labels: list[Label]) -> int:
    """Add all single stages on all devices of a kind in several groups; return the number of sweeps."""
    sweeps = 0
    for kind in np.flatnonzero(reached.segments.layout.size).tolist() if may_span(reached) else ():
        groups = _widths(reached, position, kind)
        if groups:
            table = _spanning(reached, low, position, labels, kind, groups)
            _offer_spans(reached, low, position, labels, kind, groups, table)
            sweeps += 1
    return sweeps


def may_span(reached: Reached) -> bool:
    """Whether a stage may span several whole groups."""
    kinds = int((reached.segments.layout.size > 0).sum())
    most = reached.segments.problem.pipeline.replicas
    return most > 1 and not (reached.limits.all_devices and kinds > 1)


def _widths(reached: Reached, position: int, kind: int) -> list[int]:
    """Return the numbers of groups that a stage may span from a position, across a border of the level."""
    stretch, layout = reached.stretch, reached.segments.layout
    border = layout.end(stretch.level - 1, position)
    most = reached.segments.problem.pipeline.replicas
    widest = min(stretch.end - position, most // int(layout.size[kind]))
    return list(range(border - position + 1, widest + 1))


def _spanning(
    reached: Reached, low: int, position: int, labels: list[Label], kind: int, groups: list[int]
) -> PipelineTable:
    """Return the table of the stages that start at an ideal, on all devices of a kind in several groups."""
    segments, stretch, slowdown = reached.segments, reached.stretch, reached.slowdown
    return segments.over_groups(
        low, stretch.high, reached.opened(low, position, max(groups)),
        spanning_prices(segments.problem.nets, stretch.prices, reached.within, slowdown),
        reached.behind(labels[0]), reached.least(low, labels), kind, groups, slowdown,
        stretch.end - position, reached.target,
    )  # fmt: skip


def _offer_spans(
    reached: Reached,
    low: int,
    position: int,
    labels: list[Label],
    kind: int,
    groups: list[int],
    table: PipelineTable,
) -> None:
    base, size = reached.least(low, labels), int(reached.segments.layout.size[kind])
    for each in groups:
        copies = each * size
        for high in np.flatnonzero(table.value[:, copies] < np.inf).tolist():
            if not reached.at_home(low, high, position, position + each):
                continue
            for label in labels:
                added = End(Label(position + each - label.position, copies, 1), 0.0)
                value = reached.target.joined(reached.value[low][label], table.value[high, copies], base)
                reached.offer(label, high, added, value, LabelOrigin(low, label, position, kind))
