"""The labels of a stretch's ideals, with their values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.methods.dp.pipeline.levels.labels import End, Label, LabelOrigin, Stretch
from partitioner.methods.dp.pipeline.levels.search_target import SearchTarget
from partitioner.methods.dp.pipeline.levels.segment import Segments


class Reached:
    """The labels of the ideals of a stretch.

    Parameters
    ----------
    segments
        Makes the sweeps.
    stretch, target
        The stretch, and the values that are looked for.

    Attributes
    ----------
    value, step
        The value of every label of an ideal, and how it was reached.
    within
        Shape (n,): the supernodes of the stretch.
    slowdown
        The factor of links between its groups.
    tied
        Whether it matters which groups are used, and not only how many.
    plain
        Whether only the value of a segment counts, and not its devices and stages.
    """

    def __init__(self, segments: Segments, stretch: Stretch, target: SearchTarget) -> None:
        self.segments, self.stretch, self.target = segments, stretch, target
        self.within = segments.mask(stretch.low, stretch.high)
        self.value: dict[int, dict[Label, float]] = {stretch.low: {Label(stretch.first, 0, 0): 0.0}}
        self.step: dict[tuple[int, Label], LabelOrigin] = {}
        self.limits = segments.problem.pipeline.limits
        self.slowdown = float(segments.layout.slowdown[stretch.level - 1])
        self.tied = segments.layout.bound or stretch.level > 1
        self.plain = not (segments.followed or self.limits.stages or self.limits.all_devices)

    def starts(self, low: int) -> Iterator[tuple[int, list[Label]]]:
        """Yield positions from which to extend an ideal, each with the best labels to extend there."""
        labels, end = self._best(low), self.stretch.end
        positions = range(end) if self.tied else sorted({label.position for label in labels})
        for position in positions:
            ready = [label for label in labels if label.position <= position]
            if self.limits.all_devices or not self.tied:
                ready = [label for label in ready if label.position == position]
            for behind in sorted({self.behind(label) for label in ready}) if position < end else ():
                yield position, [label for label in ready if self.behind(label) == behind]

    def behind(self, label: Label) -> int:
        """Return the number of devices behind a label; 0 if memory does not depend on it."""
        return self.stretch.behind + label.devices if self.segments.followed else 0

    @property
    def complete(self) -> float:
        """The value of the best whole pipeline so far; infinity if more than the largest load counts."""
        whole = self.stretch.level == len(self.segments.layout.slowdown)
        if not whole or self.target.summed or self.limits.stages or self.limits.all_devices:
            return float("inf")
        return min(self.value.get(self.stretch.high, {}).values(), default=float("inf"))

    def least(self, low: int, labels: list[Label]) -> float:
        """Return the smallest value of some labels of an ideal."""
        return min(self.value[low][label] for label in labels)

    def opened(self, low: int, position: int, groups: int) -> Bools:
        """Return which supernodes later stages may hold in `groups` groups from a position on, shape (n,)."""
        at_home = self.segments.layout.at_home(position, position + groups)
        return self.segments.mask(low, self.stretch.high) & at_home

    def at_home(self, low: int, high: int, first: int, end: int) -> bool:
        """Whether all supernodes between two ideals that are pinned are pinned to these groups."""
        layout = self.segments.layout
        return not layout.bound or bool(layout.at_home(first, end)[self.segments.mask(low, high)].all())

    def beaten(self, high: int, position: int, value: float) -> bool:
        """Whether a label of an ideal dominates every one with at least this value and position."""
        if not self.plain:
            return False
        found = self.value.get(high, {})
        mine = max(value, self.target.floor)
        return any(label.position <= position and each <= mine for label, each in found.items())

    def offer(self, label: Label, high: int, end: End, value: float, step: LabelOrigin) -> None:
        """Keep a label of ideal `high` unless it exceeds a limit or is no better than the known value."""
        new = Label(
            label.position + end.label.position,
            label.devices + end.label.devices if self.segments.followed or self.limits.all_devices else 0,
            label.stages + end.label.stages if self.limits.stages else 0,
        )
        groups = self.segments.layout.groups - new.position
        if self.target.hopeless(np.array([high]), np.array([value]), groups)[0] or new.stages > (
            self.limits.stages or new.stages
        ):
            return
        found = self.value.setdefault(high, {})
        if value < found.get(new, np.inf):
            found[new] = value
            self.step[high, new] = step

    def same(self, label: Label, wanted: Label) -> bool:
        """Whether two labels agree in all fields that count."""
        counted = self.segments.followed or self.limits.all_devices
        return (
            label.position == wanted.position
            and (not counted or label.devices == wanted.devices)
            and (not self.limits.stages or label.stages == wanted.stages)
        )

    def _best(self, ideal: int) -> list[Label]:
        """Return the labels of an ideal that no other label dominates."""
        value, floor, kept = self.value[ideal], self.target.floor, list[Label]()
        for label in sorted(value):
            mine = max(value[label], floor)
            if self.limits.all_devices or not any(
                other.stages == label.stages and other.devices <= label.devices and value[other] <= mine
                for other in kept
            ):
                kept.append(label)
        return kept
