"""Pipelines over levels of devices, such as servers and racks of servers (paper, Appendix H.3).

A pipeline visits the groups of a level one after the other. With q groups in use the least largest load of
stages that hold ideal J is (for a batch with sums in place of the largest)

    value[J, q + w] = min over I in J, w of max(value[I, q], segment(I, J, w))

where segment(I, J, 1) is the least largest load of stages that hold J - I inside one group: the same
recursion on the level below, and on the lowest level a table over the devices of the group; and
segment(I, J, w) is the load of one stage on all devices of a kind in w whole groups. Transfers over a border
between groups take as many times longer as the level says.

Three nodes in a row take 4 each, tensors cost 1, and two servers of two devices have links between them that
are 3 times slower. A border after the first node gives loads of 4 + 3, 3 + 4 + 1 and 1 + 4: value 8. All in
one server gives 4 + 4 + 1 = 9.

The entries are *labels* of ideals. From every ideal that has labels a chain continues with a segment on the
next group, or with one stage over several whole groups. The cost of such a stage is known directly. The cost
of a segment depends on its end: a first sweep treats transfers over its far end as transfers inside the
group, and finds the ends that may be within the threshold; then a sweep with the true costs is made for each
of these ends.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.dp.levels_model import (
    End,
    Label,
    LabelOrigin,
    Prices,
    SearchTarget,
    Stretch,
    in_group,
    layout_of,
    no_prices,
    over_groups,
    part_prices,
    spanning_prices,
)
from partitioner.methods.dp.levels_tables import UNENDING, Reached, Remainders, Segments
from partitioner.methods.dp.pipeline_loads import pipeline_value
from partitioner.methods.dp.pipeline_tables import BYTES_PER_STATE, stages_in
from partitioner.methods.dp.stages import PipelineTable
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats
from partitioner.problem.variants import PipelineProblem

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
    heavy = segments.weights.too_heavy(low, ideals, crossing, groups, target.threshold)
    ideals = ideals[~heavy]
    bound = (
        least[ideals - low]
        if target.after is None
        else np.maximum(least[ideals - low], target.after[groups, ideals])
    )
    return sorted(zip(bound.tolist(), ideals.tolist(), strict=True))


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
    hop = int(states.jump[0])
    return state // hop if hop else int(states.behind[state])


def _table_between(reached: Reached, low: int, high: int, behind: int) -> PipelineTable:
    segments = reached.segments
    share = segments.mask(low, high)
    prices = part_prices(
        segments.problem.nets, reached.stretch.prices, reached.within, share, reached.slowdown
    )
    return segments.in_group(low, high, share, prices, behind, 0.0, 0, reached.target)


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


FEW_STATES = 64


class LevelsTables:
    """The source of tables, as :class:`partitioner.methods.dp.pipeline_tables.PipelineTables`, for levels."""

    def __init__(self, problem: PipelineProblem, relaxation: Relaxation, lattice: Lattice) -> None:
        self.problem, self.relaxation, self.lattice = problem, relaxation, lattice
        self.segments = Segments(problem, relaxation, lattice)
        self.rest = self.segments.rest
        self.remainders = None
        if not lattice.linear or problem.states <= FEW_STATES:
            self.remainders = Remainders(problem, relaxation, lattice, self.segments.layout)
        self._known: Known = {}

    def filling(self, threshold: float, floor: float) -> LevelsFilling:
        """Return a search of least largest loads up to a threshold; those up to the floor count as equal."""
        return LevelsFilling(self, self._target(threshold, threshold, floor, summed=False), self._known)

    def summing(self, threshold: float, limit: float) -> LevelsFilling:
        """Return a search of least sums of loads up to a limit, with no load above the threshold."""
        return LevelsFilling(self, self._target(threshold, limit, 0.0, summed=True), {})

    def _target(self, threshold: float, limit: float, floor: float, summed: bool) -> SearchTarget:
        if self.remainders is None:
            return SearchTarget(threshold, limit, floor, summed)
        outside = self.remainders.outside(threshold, limit, floor, summed)
        return SearchTarget(threshold, limit, floor, summed, self.remainders.by_groups(outside), outside)


class LevelsFilling:
    """A search of chains through all groups, which are extended from the empty ideal up.

    Attributes
    ----------
    ideal
        The next ideal to extend; at the last one the search is complete.
    steps
        The approximate number of steps so far.
    """

    def __init__(self, tables: LevelsTables, target: SearchTarget, known: Known) -> None:
        self.tables = tables
        layout, problem = tables.segments.layout, tables.problem
        whole = Stretch(
            len(layout.slowdown), 0, tables.lattice.size - 1, 0, layout.groups, 0, no_prices(problem.nets)
        )
        self.chain = Chain(tables.segments, whole, target, known)

    @property
    def ideal(self) -> int:
        """The next ideal to extend."""
        return self.chain.ideal

    @property
    def steps(self) -> int:
        """The approximate number of steps so far."""
        return self.chain.steps

    def advance(self, budget: int) -> None:
        """Continue for about `budget` steps."""
        self.chain.advance(budget)

    def best(self) -> tuple[float, list[Part]] | None:
        """Return the value and the stages of the best chain that holds all; None if there is none."""
        limits, groups = self.tables.problem.pipeline.limits, self.tables.segments.layout.groups
        ends = [
            end
            for end in self.chain.ends()
            if end.label.stages == limits.stages and (end.label.position == groups or not limits.all_devices)
        ]
        if not ends:
            return None
        best: Label = min(ends, key=lambda end: end.value).label
        stages = self.chain.stages(best)
        return pipeline_value(self.tables.problem, stages), stages


def group_bytes(problem: PipelineProblem) -> int:
    """Return the bytes that a search over levels takes for each ideal, in addition to the lattice."""
    group = replace(problem, count=layout_of(problem).size)
    return BYTES_PER_STATE * group.states + problem.n
