"""Chains of segments: one group of devices after the other, in the order of the ideals.

A label of an ideal says that the groups before a position can hold it. From every ideal that has labels
a chain goes on with a segment on the next group, or with one stage over several whole groups. What a
stage over several groups costs is known at once. What a segment on one group costs depends on where it
ends: a first sweep takes transfers out of its far end for transfers inside the group, and finds the
ends that may be within the threshold; each of them then has a sweep of its own with the true costs.
With several levels such a segment is a chain itself, of segments on smaller groups.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from partitioner.methods.method import Part
from partitioner.methods.pipeline.ground import stages_in
from partitioner.methods.pipeline.levels.labels import End, Label, Step, Stretch
from partitioner.methods.pipeline.levels.layout import in_group, over_groups
from partitioner.methods.pipeline.levels.prices import Prices, part_prices, spanning_prices
from partitioner.methods.pipeline.levels.segment import UNENDING, Aim, Segments
from partitioner.methods.pipeline.loads import pipeline_of
from partitioner.preprocess.problem import Floats

STEPS_A_SEGMENT = 50_000

Walk = Generator[int, None, None]


@dataclass(eq=False)
class Chain:
    """The best chains of segments through a stretch.

    Parameters
    ----------
    segments
        What sweeps are made with.
    stretch, aim
        Where they lie, and what is looked for.
    known
        Segments between two ideals that were solved before.
    """

    segments: Segments
    stretch: Stretch
    aim: Aim
    known: dict[tuple[int, ...], tuple[Aim, list[End]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        low, high = self.stretch.low, self.stretch.high
        self.within = self.segments.mask(low, high)
        self.value: dict[int, dict[Label, float]] = {low: {Label(self.stretch.first, 0, 0): 0.0}}
        self.step: dict[tuple[int, Label], Step] = {}
        self.ideal = low
        self.steps = 0
        self._way = self.walk()
        self.limits = pipeline_of(self.segments.problem).limits
        self.slowdown = float(self.segments.layout.slowdown[self.stretch.level - 1])
        self.tied = self.segments.layout.bound or self.stretch.level > 1

    def advance(self, budget: int) -> None:
        """Extend the labels of further ideals, until about `budget` steps are made."""
        enough = self.steps + budget
        for steps in self._way:
            self.steps += steps
            if self.steps > enough:
                return

    def walk(self) -> Walk:
        """Extend the labels of all ideals, segment by segment; yields steps."""
        while self.ideal < self.stretch.high:
            if self.ideal in self.value:
                yield from self._extend(self.ideal)
            self.ideal += 1

    def ends(self) -> list[End]:
        """The ways found to hold the whole stretch, relative to its start, and their values."""
        found = self.value.get(self.stretch.high, {})
        first = self.stretch.first
        return [End(label._replace(position=label.position - first), each) for label, each in found.items()]

    def stages(self, label: Label) -> list[Part]:
        """The stages, with their devices, of one of the ways to hold the stretch."""
        ideal, found = self.stretch.high, []
        while ideal != self.stretch.low:
            step = self.step[ideal, label]
            found.append(self._stages_of(step, ideal, label))
            ideal, label = step.ideal, step.label
        return [stage for part in found[::-1] for stage in part]

    def _extend(self, low: int) -> Walk:
        for position, labels in self._starts(low):
            yield self._go_over_groups(low, position, labels)
            yield from self._go_in_group(low, position, labels)

    def _starts(self, low: int) -> Iterator[tuple[int, list[Label]]]:
        """The positions from which to go on, with the labels of an ideal that can do so, best ones only."""
        labels, end = self._best_labels(low), self.stretch.end
        positions = range(end) if self.tied else sorted({label.position for label in labels})
        for position in positions:
            ready = [label for label in labels if label.position <= position]
            if self.limits.all_devices or not self.tied:
                ready = [label for label in ready if label.position == position]
            for behind in sorted({self._behind(label) for label in ready}) if position < end else ():
                yield position, [label for label in ready if self._behind(label) == behind]

    def _best_labels(self, ideal: int) -> list[Label]:
        """The labels of an ideal that no other one beats."""
        value, floor, kept = self.value[ideal], self.aim.floor, list[Label]()
        for label in sorted(value):
            mine = max(value[label], floor)
            if self.limits.all_devices or not any(
                other.stages == label.stages and other.devices <= label.devices and value[other] <= mine
                for other in kept
            ):
                kept.append(label)
        return kept

    def _behind(self, label: Label) -> int:
        """The devices behind, as far as memory depends on them."""
        return self.stretch.behind + label.devices if self.segments.followed else 0

    def _go_over_groups(self, low: int, position: int, labels: list[Label]) -> int:
        """Add one stage on all devices of a kind in several groups, in all ways; returns the steps."""
        steps = 0
        if not self._may_span():
            return steps
        layout, stretch = self.segments.layout, self.stretch
        for kind in np.flatnonzero(layout.size).tolist():
            groups = self._widths(position, kind)
            if not groups:
                continue
            table = self.segments.over_groups(
                low, stretch.high, self._open(low, position, max(groups)),
                spanning_prices(self.segments.problem.nets, stretch.prices, self.within, self.slowdown),
                self._behind(labels[0]), self._least(low, labels), kind, groups, self.slowdown,
                stretch.end - position, self.aim,
            )  # fmt: skip
            steps += STEPS_A_SEGMENT
            for each in groups:
                copies = each * int(layout.size[kind])
                base = self._least(low, labels)
                for high in np.flatnonzero(table.value[:, copies] < np.inf).tolist():
                    if not self._at_home(low, high, position, position + each):
                        continue
                    for label in labels:
                        added = End(Label(position + each - label.position, copies, 1), 0.0)
                        value = self._joined(self.value[low][label], table.value[high, copies], base)
                        self._offer(label, high, added, value, Step(low, label, position, kind))
        return steps

    def _may_span(self) -> bool:
        kinds = int((self.segments.layout.size > 0).sum())
        most = pipeline_of(self.segments.problem).replicas
        return most > 1 and not (self.limits.all_devices and kinds > 1)

    def _widths(self, position: int, kind: int) -> list[int]:
        """How many groups a stage may span from a position: across a border, within the stretch."""
        layout, most = self.segments.layout, pipeline_of(self.segments.problem).replicas
        border = layout.end(self.stretch.level - 1, position)
        widest = min(self.stretch.end - position, most // int(layout.size[kind]))
        return list(range(border - position + 1, widest + 1))

    def _go_in_group(self, low: int, position: int, labels: list[Label]) -> Walk:
        """Add a segment inside the group at a position, in all ways."""
        highs = self._ends_in_group(low, position, labels)
        yield STEPS_A_SEGMENT
        for high in highs:
            ends = yield from self._between(low, high, position, self._behind(labels[0]))
            for end in ends:
                for label in labels:
                    value = self._joined(self.value[low][label], end.value, 0.0)
                    step = Step(low, label, position, -1)
                    shifted = end.label._replace(position=end.label.position + position - label.position)
                    self._offer(label, high, End(shifted, end.value), value, step)

    def _ends_in_group(self, low: int, position: int, labels: list[Label]) -> list[int]:
        """The ideals at which a segment may end, by a sweep that leaves its far end cheap."""
        segments, stretch, high = self.segments, self.stretch, self.stretch.high
        border = min(segments.layout.end(stretch.level - 1, position), stretch.end)
        if border >= stretch.end:
            return [high]
        if stretch.level > 1:
            wide = segments.above(low) & segments.below(high)
            wide[low] = False
            inside = np.flatnonzero(wide)
            rest = segments.layout.groups - position - 1
            return [*inside[~self.aim.hopeless(inside, np.zeros(len(inside)), rest)].tolist()]
        prices = self._far_end_cheap(low)
        opened = self._open(low, position, 1)
        start = self._least(low, labels)
        table = segments.in_group(
            low, high, opened, prices, self._behind(labels[0]), start, stretch.end - position - 1, self.aim
        )
        least = table.value[low : high + 1].min(axis=1)
        ideals = low + 1 + np.flatnonzero(least[1:] <= self.aim.limit)
        groups = segments.layout.groups - position - 1
        ideals = ideals[~self.aim.hopeless(ideals, least[ideals - low], groups)]
        crossing = spanning_prices(segments.problem.nets, stretch.prices, self.within, self.slowdown)
        ideals = ideals[~segments.too_heavy(low, ideals, crossing, groups, self.aim)]
        return [
            ideal for ideal in ideals.tolist()
            if not self._beaten(ideal, position + 1, labels, float(least[ideal - low]))
        ]  # fmt: skip

    def _far_end_cheap(self, low: int) -> Prices:
        """Prices behind a segment that begins at `low`: of what is in front of it, as if in its group."""
        segments, stretch = self.segments, self.stretch
        return part_prices(
            segments.problem.nets,
            stretch.prices,
            self.within,
            segments.mask(low, stretch.high),
            self.slowdown,
        )

    def _beaten(self, high: int, position: int, labels: list[Label], value: float) -> bool:
        """Do labels make useless whatever reaches an ideal with at least this value at a position?"""
        if self.segments.followed or self.limits.stages or self.limits.all_devices:
            return False
        found = self.value.get(high, {})
        mine = max(value, self.aim.floor)
        return any(label.position <= position and each <= mine for label, each in found.items())

    def _between(self, low: int, high: int, position: int, behind: int) -> Generator[int, None, list[End]]:
        """The ways to hold what is between two ideals in the group at a position."""
        key = (low, high, behind, position if self.tied else -1)
        if key in self.known and self._still_holds(*self.known[key]):
            return self.known[key][1]
        if self.stretch.level == 1:
            found = self._in_one_group(low, high, position, behind)
        else:
            chain = self._chain_between(low, high, position, behind)
            yield from chain.walk()
            found = chain.ends()
        yield STEPS_A_SEGMENT
        self.known[key] = self.aim, found
        return found

    def _still_holds(self, aim: Aim, found: list[End]) -> bool:
        """Is what was found with another aim what would be found with this one?"""
        plain = not (self.segments.followed or self.limits.stages or self.limits.all_devices)
        wide = aim.threshold >= self.aim.threshold or (plain and bool(found) and not self.aim.summed)
        return wide and (not found or aim.floor <= self.aim.floor)

    def _in_one_group(self, low: int, high: int, position: int, behind: int) -> list[End]:
        if not self._at_home(low, high, position, position + 1):
            return []
        segments = self.segments
        table = self._table_between(low, high, position, behind)
        space, found = segments.space, list[End]()
        used = segments.layout.size - space.free
        for state in np.flatnonzero(table.value[high] < np.inf).tolist():
            if self.limits.all_devices and space.free[state].any():
                continue
            label = Label(1, int(used[state].sum()), self._stages_counted(state))
            found.append(End(label, float(table.value[high, state])))
        return self._simplest(found)

    def _simplest(self, found: list[End]) -> list[End]:
        """The ends that no other one beats, where only the value counts."""
        if self.segments.followed or self.limits.stages or self.limits.all_devices or not found:
            return found
        return [min(found, key=lambda end: end.value)]

    def _stages_counted(self, state: int) -> int:
        """How many stages a state of a group stands for; 0 if that does not matter."""
        if not self.limits.stages:
            return 0
        states = self.segments.space.states
        return state // states.hop if states.hop else int(states.behind[state])

    def _table_between(self, low: int, high: int, position: int, behind: int):  # type: ignore[no-untyped-def]
        segments, share = self.segments, self.segments.mask(low, high)
        prices = part_prices(segments.problem.nets, self.stretch.prices, self.within, share, self.slowdown)
        return segments.in_group(low, high, share, prices, behind, 0.0, 0, self.aim)

    def _chain_between(self, low: int, high: int, position: int, behind: int) -> Chain:
        segments, stretch = self.segments, self.stretch
        share = segments.mask(low, high)
        prices = part_prices(segments.problem.nets, stretch.prices, self.within, share, self.slowdown)
        end = min(segments.layout.end(stretch.level - 1, position), stretch.end)
        inner = Stretch(stretch.level - 1, low, high, position, end, behind, prices)
        return Chain(segments, inner, self.aim)

    def _joined(self, first: float, second: float, base: float) -> float:
        return first + second - base if self.aim.summed else max(first, second)

    def _offer(self, label: Label, high: int, end: End, value: float, step: Step) -> None:
        """Keep a way to hold an ideal, unless it exceeds a limit or is no better than what is known."""
        new = Label(
            label.position + end.label.position,
            label.devices + end.label.devices if self.segments.followed or self.limits.all_devices else 0,
            label.stages + end.label.stages if self.limits.stages else 0,
        )
        groups = self.segments.layout.groups - new.position
        if self.aim.hopeless(np.array([high]), np.array([value]), groups)[0] or new.stages > (
            self.limits.stages or new.stages
        ):
            return
        found = self.value.setdefault(high, {})
        if value < found.get(new, np.inf):
            found[new] = value
            self.step[high, new] = step

    def _least(self, low: int, labels: list[Label]) -> float:
        return min(self.value[low][label] for label in labels)

    def _open(self, low: int, position: int, groups: int):  # type: ignore[no-untyped-def]
        at_home = self.segments.layout.at_home(position, position + groups)
        return self.segments.mask(low, self.stretch.high) & at_home

    def _at_home(self, low: int, high: int, first: int, end: int) -> bool:
        """Is all between two ideals that is pinned to a device pinned to one of these groups?"""
        layout = self.segments.layout
        return not layout.bound or bool(layout.at_home(first, end)[self.segments.mask(low, high)].all())

    def _stages_of(self, step: Step, high: int, label: Label) -> list[Part]:
        """The stages of one segment."""
        segments, behind = self.segments, self._behind(step.label)
        if step.kind >= 0:
            nodes = segments.lattice.difference(high, step.ideal)
            groups = label.position - step.position
            return [over_groups(segments.layout, step.kind, nodes, step.position, groups)]
        wanted = Label(
            label.position - step.position,
            label.devices - step.label.devices,
            label.stages - step.label.stages,
        )
        if self.stretch.level > 1:
            chain = self._chain_between(step.ideal, high, step.position, behind)
            chain.advance(UNENDING)
            best = min((end for end in chain.ends() if self._same(end.label, wanted)), key=lambda e: e.value)
            return chain.stages(best.label._replace(position=best.label.position + step.position))
        return self._stages_in_group(step, high, behind, wanted)

    def _same(self, label: Label, wanted: Label) -> bool:
        counted = self.segments.followed or self.limits.all_devices
        return (
            label.position == wanted.position
            and (not counted or label.devices == wanted.devices)
            and (not self.limits.stages or label.stages == wanted.stages)
        )

    def _stages_in_group(self, step: Step, high: int, behind: int, wanted: Label) -> list[Part]:
        segments = self.segments
        table = self._table_between(step.ideal, high, step.position, behind)
        used = (segments.layout.size - segments.space.free).sum(axis=1)
        row: Floats = table.value[high].copy()
        for state in range(len(row)):
            full = not segments.space.free[state].any() or not self.limits.all_devices
            label = Label(1, int(used[state]), self._stages_counted(state))
            if not full or not self._same(label, wanted):
                row[state] = np.inf
        stages = stages_in(table, segments, high, int(row.argmin()), step.ideal)
        return in_group(segments.problem, segments.layout, stages, step.position)
