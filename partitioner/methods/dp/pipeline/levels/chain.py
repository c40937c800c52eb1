"""Chains of segments, on one group of devices after the other, in the order of the ideals.

A label of an ideal says that the groups before a position can hold the ideal. From every ideal that has
labels a chain continues with a segment on the next group, or with one stage over several whole groups. The
cost of a stage over several groups is known directly. The cost of a segment on one group depends on its
end: a first sweep treats transfers over its far end as transfers inside the group, and finds the ends that
may be within the threshold; then a sweep with the true costs is made for each of these ends. With several
levels such a segment is itself a chain of segments on smaller groups.
"""

from __future__ import annotations

from collections.abc import Generator

from partitioner.methods.dp.pipeline.levels.ahead import bound_ahead, looks_ahead
from partitioner.methods.dp.pipeline.levels.inside import ends_in_group, stages_in_group, ways_in_group
from partitioner.methods.dp.pipeline.levels.labels import End, Label, LabelOrigin, Stretch
from partitioner.methods.dp.pipeline.levels.layout import over_groups
from partitioner.methods.dp.pipeline.levels.prices import part_prices
from partitioner.methods.dp.pipeline.levels.reached import Reached
from partitioner.methods.dp.pipeline.levels.search_target import SearchTarget
from partitioner.methods.dp.pipeline.levels.segment import UNENDING, Segments
from partitioner.methods.dp.pipeline.levels.spans import span_groups
from partitioner.methods.method import Part

STEPS_A_SWEEP = 50_000

Walk = Generator[int, None, None]
Known = dict[tuple[int, ...], tuple[SearchTarget, list[End]]]


class Chain:
    """The search for the best chains of segments through a stretch.

    Parameters
    ----------
    segments
        Makes the sweeps.
    stretch, target
        The part of the pipeline that the chains hold, and the values that are looked for.
    known
        Segments between two ideals that were solved before.
    """

    def __init__(
        self, segments: Segments, stretch: Stretch, target: SearchTarget, known: Known | None = None
    ) -> None:
        self.segments, self.stretch, self.target = segments, stretch, target
        self.reached = Reached(segments, stretch, target)
        self.known: Known = {} if known is None else known
        self.bounds: dict[tuple[int, int], float] = {}
        self.ideal = stretch.low
        self.steps = 0
        self._way = self.walk()

    def advance(self, budget: int) -> None:
        """Extend the labels of further ideals for about `budget` steps."""
        enough = self.steps + budget
        for steps in self._way:
            self.steps += steps
            if self.steps > enough:
                return

    def walk(self) -> Walk:
        """Extend the labels of all ideals, segment by segment; yield the steps of each."""
        while self.ideal < self.stretch.high:
            if self.reached.complete <= self.target.floor:
                self.ideal = self.stretch.high
            elif self.ideal in self.reached.value:
                for position, labels in self.reached.starts(self.ideal):
                    yield STEPS_A_SWEEP * span_groups(self.reached, self.ideal, position, labels)
                    yield from self._go_in_group(self.ideal, position, labels)
            self.ideal += self.ideal < self.stretch.high

    def ends(self) -> list[End]:
        """Return the labels of the whole stretch, relative to its start, with their values."""
        found = self.reached.value.get(self.stretch.high, {})
        first = self.stretch.first
        return [End(label._replace(position=label.position - first), each) for label, each in found.items()]

    def stages(self, label: Label) -> list[Part]:
        """Return the stages, with their devices, of the chain that a label of the stretch stands for."""
        ideal, found = self.stretch.high, []
        while ideal != self.stretch.low:
            step = self.reached.step[ideal, label]
            found.append(self._stages_of(step, ideal, label))
            ideal, label = step.ideal, step.label
        return [stage for part in found[::-1] for stage in part]

    def _go_in_group(self, low: int, position: int, labels: list[Label]) -> Walk:
        """Add all segments inside the group at a position to some labels of ideal `low`; yield steps."""
        reached = self.reached
        highs = ends_in_group(reached, low, position, labels)
        yield STEPS_A_SWEEP
        for bound, high in highs:
            if reached.complete <= max(bound, self.target.floor) or self._hopeless(high, position + 1):
                continue
            ends = yield from self._between(low, high, position, reached.behind(labels[0]))
            for end in ends:
                for label in labels:
                    value = self.target.joined(reached.value[low][label], end.value)
                    step = LabelOrigin(low, label, position, -1)
                    shifted = end.label._replace(position=end.label.position + position - label.position)
                    reached.offer(label, high, End(shifted, end.value), value, step)
            yield from self._close(high, position + 1)

    def _close(self, low: int, position: int) -> Walk:
        """Extend ideal `low` now if one group is left, as whole pipelines rule out all that is no better."""
        if self.stretch.level == 1 and position == self.stretch.end - 1 and low in self.reached.value:
            for each, labels in self.reached.starts(low) if low < self.stretch.high else ():
                if each == position:
                    yield from self._go_in_group(low, position, labels)

    def _hopeless(self, low: int, position: int) -> bool:
        """Whether no pipeline with a group that begins at an ideal is better than the best one found."""
        if low == self.stretch.high or position >= self.stretch.end or not looks_ahead(self.reached):
            return False
        if (low, position) not in self.bounds:
            self.bounds[low, position] = bound_ahead(self.reached, low, position)
        return self.bounds[low, position] >= self.reached.complete

    def _between(self, low: int, high: int, position: int, behind: int) -> Generator[int, None, list[End]]:
        """Return the ends of segments between two ideals in the group at a position; yield steps."""
        key = (low, high, behind, position if self.reached.tied else -1)
        if key in self.known and self._still_holds(*self.known[key]):
            return self.known[key][1]
        if self.stretch.level == 1:
            found = ways_in_group(self.reached, low, high, position, behind)
        else:
            chain = self._chain_between(low, high, position, behind)
            yield from chain.walk()
            found = chain.ends()
        yield STEPS_A_SWEEP
        self.known[key] = self.target, found
        return found

    def _still_holds(self, target: SearchTarget, found: list[End]) -> bool:
        """Whether the ends found with another target are those that this target would give."""
        plain = self.reached.plain and bool(found) and not self.target.summed
        wide = target.threshold >= self.target.threshold or plain
        return wide and (not found or target.floor <= self.target.floor)

    def _chain_between(self, low: int, high: int, position: int, behind: int) -> Chain:
        segments, stretch, reached = self.segments, self.stretch, self.reached
        share = segments.mask(low, high)
        prices = part_prices(segments.problem.nets, stretch.prices, reached.within, share, reached.slowdown)
        end = min(segments.layout.end(stretch.level - 1, position), stretch.end)
        return Chain(
            segments, Stretch(stretch.level - 1, low, high, position, end, behind, prices), self.target
        )

    def _stages_of(self, step: LabelOrigin, high: int, label: Label) -> list[Part]:
        """Return the stages of one segment."""
        segments, reached = self.segments, self.reached
        if step.kind >= 0:
            nodes = segments.lattice.difference(high, step.ideal)
            groups = label.position - step.position
            return [over_groups(segments.layout, step.kind, nodes, step.position, groups)]
        behind = reached.behind(step.label)
        wanted = Label(
            label.position - step.position,
            label.devices - step.label.devices,
            label.stages - step.label.stages,
        )
        if self.stretch.level == 1:
            return stages_in_group(reached, step, high, behind, wanted)
        chain = self._chain_between(step.ideal, high, step.position, behind)
        chain.advance(UNENDING)
        best = min((end for end in chain.ends() if reached.same(end.label, wanted)), key=lambda e: e.value)
        return chain.stages(best.label._replace(position=best.label.position + step.position))
