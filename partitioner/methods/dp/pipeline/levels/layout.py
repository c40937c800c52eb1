"""The groups of devices of the smallest level, and their positions along the pipeline.

The pipeline visits the groups one after the other. Positions count the groups in the order in which the
dynamic program fills them, which is from the end of the pipeline if the problem is a turned one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.methods.dp.stages import behind_matters
from partitioner.methods.method import Part
from partitioner.problem.arrays import Floats, Ints
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
    backwards = behind_matters(problem)
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
