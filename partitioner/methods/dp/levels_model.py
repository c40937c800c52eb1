"""Groups of devices along a pipeline, the prices of transfers over their borders, and labels of ideals.

Positions count the groups of the smallest level in the order in which the dynamic program fills them, which
is from the end of the pipeline if the problem is a turned one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.methods.bounds.relaxation import SLACK
from partitioner.methods.dp.stages import Bools
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Nets
from partitioner.problem.variants import PipelineProblem


@dataclass(frozen=True, eq=False)
class GroupLayout:
    """The layout of equal groups of devices of K kinds in L levels.

    Parameters
    ----------
    size
        Shape (K,): devices in a group of the smallest level.
    groups
        How many of these groups there are.
    spans
        Shape (L + 1,): how many of them a group of each level holds, with all of them as the last entry.
    slowdown
        Shape (L,): the factor on the cost of a transfer out of a group of each level.
    turned
        Whether positions are counted from the end of the pipeline.
    home
        Shape (n, 2): the first and last position with a device that a supernode is pinned to; the number of
        groups and -1 if it is not pinned.
    """

    size: Ints
    groups: int
    spans: Ints
    slowdown: Floats
    turned: bool
    home: Ints

    @property
    def bound(self) -> bool:
        """Whether anything is pinned to a device."""
        return bool((self.home[:, 1] >= 0).any())

    def at_home(self, first: int, end: int) -> Bools:
        """Return whether all devices that each supernode is pinned to are at these positions, shape (n,)."""
        return np.asarray((self.home[:, 0] >= first) & (self.home[:, 1] < end))

    def end(self, level: int, position: int) -> int:
        """Return the position behind the group of a level that holds a position."""
        span = int(self.spans[level])
        return min((position // span + 1) * span, self.groups)

    def devices(self, kind: int, position: int, groups: int = 1) -> range:
        """Return the indices of the devices of a kind in `groups` groups from a position on."""
        first = self.groups - position - groups if self.turned else position
        size = int(self.size[kind])
        return range(first * size, (first + groups) * size)


def layout_of(problem: PipelineProblem) -> GroupLayout:
    """Return the layout of the devices of a problem, which has levels."""
    pipeline = problem.pipeline
    size = np.minimum(pipeline.group[0], problem.count)
    present = int((size > 0).argmax())
    groups = max(1, int(problem.count[present] // max(1, size[present])))
    spans = pipeline.group[:, present] // max(1, pipeline.group[0, present])
    backwards = problem.pipeline.behind_matters
    return GroupLayout(
        size=size,
        groups=groups,
        spans=np.append(spans, groups),
        slowdown=pipeline.slowdown,
        turned=backwards,
        home=_homes(problem, size, groups, backwards),
    )


def _homes(problem: PipelineProblem, size: Ints, groups: int, backwards: bool) -> Ints:
    pinned, kind = problem.pipeline.pinned, problem.allowed.argmax(axis=0)
    owner = pinned.owners()
    number = pinned.items // np.maximum(size, 1)[kind[owner]]
    position = groups - 1 - number if backwards else number
    home = np.tile(np.array([groups, -1]), (problem.n, 1))
    np.minimum.at(home[:, 0], owner, position)
    np.maximum.at(home[:, 1], owner, position)
    return home


def in_group(problem: PipelineProblem, layout: GroupLayout, stages: list[Part], position: int) -> list[Part]:
    """Return the stages of one group with their devices: those that supernodes are pinned to, then free ones.

    Free devices are assigned in ascending order along the pipeline, also if the problem is turned.
    """
    pinned = problem.pipeline.pinned
    chosen = [sorted({int(i) for v in stage.nodes for i in pinned.row(v)}) for stage in stages]
    taken = {(stage.kind, i) for stage, own in zip(stages, chosen, strict=True) for i in own}
    placed = list(stages)
    along = range(len(stages))
    for number in reversed(along) if layout.turned else along:
        stage, own = stages[number], chosen[number]
        room = layout.devices(stage.kind, position)
        free = [i for i in room if (stage.kind, i) not in taken][: stage.replicas - len(own)]
        taken |= {(stage.kind, i) for i in free}
        placed[number] = Part(stage.kind, stage.nodes, stage.replicas, (*own, *free))
    return placed


def over_groups(layout: GroupLayout, kind: int, nodes: Ints, position: int, groups: int) -> Part:
    """Return a stage on all devices of a kind in `groups` groups from a position on."""
    devices = layout.devices(kind, position, groups)
    return Part(kind, nodes, len(devices), tuple(devices))


class Prices(NamedTuple):
    """Factors by which transfers between a group of devices and the outside are slower than inside it.

    Parameters
    ----------
    enter
        Shape (E,): the factor for a tensor that a stage of the group brings in, if it is made outside it.
    leave
        Shape (E,): the factor for a tensor that a stage sends out; 1 if nothing outside the group reads it.
    """

    enter: Floats
    leave: Floats


def no_prices(nets: Nets) -> Prices:
    """Return the prices if all devices are in the group: 1 for every net."""
    return Prices(np.ones(len(nets.cost)), np.ones(len(nets.cost)))


def part_prices(nets: Nets, whole: Prices, within: Bools, share: Bools, slowdown: float) -> Prices:
    """Return the prices of a part that holds the supernodes `share` of those `within` a group.

    A net whose other pins are in the same part has price 1.

    Parameters
    ----------
    nets, whole
        The nets, and the prices of the group.
    within, share
        Shape (n,) each: whether each supernode is in the group, and in the part.
    slowdown
        The factor of links between parts of the group.
    """
    pins = nets.pins
    outside = np.bincount(pins.owners(), (within & ~share)[pins.items], len(nets.cost)) > 0
    enter = np.where(within[nets.source], slowdown, whole.enter)
    leave = np.where(outside, np.maximum(whole.leave, slowdown), whole.leave)
    return Prices(np.where(share[nets.source], 1.0, enter), leave)


def spanning_prices(nets: Nets, whole: Prices, within: Bools, slowdown: float) -> Prices:
    """Return the prices of a stage whose own devices are in several parts of a group."""
    enter = np.where(within[nets.source], slowdown, whole.enter)
    return Prices(enter, np.maximum(whole.leave, slowdown))


class Stretch(NamedTuple):
    """A part of the pipeline that is inside one group of a level.

    Parameters
    ----------
    level
        The level; the number of levels for all devices.
    low, high
        It holds the supernodes of ideal `high` that ideal `low` does not hold.
    first, end
        The positions of the smallest groups that it may use.
    behind
        The number of devices behind it.
    prices
        What its stages pay for tensors that cross its ends.
    """

    level: int
    low: int
    high: int
    first: int
    end: int
    behind: int
    prices: Prices


class Label(NamedTuple):
    """The groups before `position` hold an ideal, with `devices` devices in `stages` stages."""

    position: int
    devices: int
    stages: int


class End(NamedTuple):
    """A solved segment: what it adds to a label, and its value."""

    label: Label
    value: float


class LabelOrigin(NamedTuple):
    """How a label was reached: the previous ideal and label, the position where the segment begins, the kind.

    The kind is that of a stage over several groups, and -1 for a segment inside a group.
    """

    ideal: int
    label: Label
    position: int
    kind: int


class Outside(NamedTuple):
    """The least values of stages that hold the supernodes outside an ideal, by the devices that they have.

    Parameters
    ----------
    value
        Shape (I, S): the least value on the devices of a state, infinity if no pipeline within the threshold
        continues with these.
    used
        Shape (S, K): the number of devices of each kind in a state.
    """

    value: Floats
    used: Ints

    def least(self, ideals: Ints, free: Ints) -> Floats:
        """Return the least value for each of the `ideals` on free devices, whose numbers have shape (K,)."""
        fits = (self.used <= free).all(axis=1)
        return np.asarray(self.value[np.ix_(ideals, fits)].min(axis=1, initial=np.inf))


@dataclass(frozen=True)
class SearchTarget:
    """The limits on pipelines, see :class:`partitioner.methods.dp.stages.PipelineSearchSpec`.

    Parameters
    ----------
    threshold, limit, floor, summed
        The fields of that class.
    after
        Shape (groups + 1, I): the least value of stages outside an ideal, by the number of groups.
    outside
        The same by the numbers of devices of each kind.
    """

    threshold: float
    limit: float
    floor: float
    summed: bool
    after: Floats | None = None
    outside: Outside | None = None

    def joined(self, first: float, second: float, base: float = 0.0) -> float:
        """Return the value of two parts of a pipeline; if values add up, `base` is subtracted."""
        return first + second - base if self.summed else max(first, second)

    def hopeless(self, ideals: Ints, value: Floats, groups: int) -> Bools:
        """Return for each of the `ideals`, held at a value, whether all its pipelines exceed the limit."""
        if self.after is None:
            return value > self.limit
        after = self.after[groups, ideals]
        whole = value + after * (1 - SLACK) if self.summed else np.maximum(value, after)
        return np.asarray(whole > self.limit)
