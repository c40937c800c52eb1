"""How many devices are in a group of the smallest level, and which group is where.

The pipeline visits the groups one after the other. Positions count them from the end of the pipeline,
as the dynamic program does: position p is the group of number ``groups - 1 - p``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.method import Part
from partitioner.methods.pipeline.loads import pipeline_of
from partitioner.preprocess.problem import Floats, Ints, Problem


@dataclass(frozen=True, eq=False)
class Layout:
    """Equal groups of devices, K kinds, L levels.

    Parameters
    ----------
    size
        Shape (K,): devices in a group of the smallest level.
    groups
        How many of these groups there are.
    spans
        Shape (L + 1,): how many of them a group of each level holds, all of them last.
    slowdown
        Shape (L,): what a transfer out of a group of the level costs, times its cost.
    home
        Shape (n,): the position to which a supernode is bound by the device it is pinned to, or -1.
    """

    size: Ints
    groups: int
    spans: Ints
    slowdown: Floats
    home: Ints

    @property
    def bound(self) -> bool:
        """Is anything pinned to a device?"""
        return bool((self.home >= 0).any())

    def end(self, level: int, position: int) -> int:
        """The position behind the group of a level that holds a position."""
        span = int(self.spans[level])
        return min((position // span + 1) * span, self.groups)

    def first_device(self, kind: int, position: int) -> int:
        """The index of the first device of a kind in a group."""
        return (self.groups - 1 - position) * int(self.size[kind])


def layout_of(problem: Problem) -> Layout:
    """The layout of the devices of a problem, which has levels."""
    pipeline = pipeline_of(problem)
    size = np.minimum(pipeline.group[0], problem.count)
    present = int((size > 0).argmax())
    groups = max(1, int(problem.count[present] // max(1, size[present])))
    spans = pipeline.group[:, present] // max(1, pipeline.group[0, present])
    kind = problem.allowed.argmax(axis=0)
    home = groups - 1 - pipeline.pinned // np.maximum(size, 1)[kind]
    return Layout(
        size=size,
        groups=groups,
        spans=np.append(spans, groups),
        slowdown=pipeline.slowdown,
        home=np.where(pipeline.pinned >= 0, home, -1),
    )


def in_group(problem: Problem, layout: Layout, stages: list[Part], position: int) -> list[Part]:
    """The stages of one group with their devices: those that something is pinned to, then free ones."""
    pinned = pipeline_of(problem).pinned
    chosen = [sorted({int(i) for i in pinned[stage.nodes] if i >= 0}) for stage in stages]
    placed = []
    taken = {(stage.kind, i) for stage, own in zip(stages, chosen, strict=True) for i in own}
    for stage, own in zip(stages, chosen, strict=True):
        first = layout.first_device(stage.kind, position)
        room = range(first, first + int(layout.size[stage.kind]))
        free = [i for i in room if (stage.kind, i) not in taken][: stage.replicas - len(own)]
        taken |= {(stage.kind, i) for i in free}
        placed.append(Part(stage.kind, stage.nodes, stage.replicas, (*own, *free)))
    return placed


def over_groups(layout: Layout, kind: int, nodes: Ints, position: int, groups: int) -> Part:
    """A stage on all devices of a kind in consecutive groups, the first of which is at a position."""
    first = layout.first_device(kind, position + groups - 1)
    count = groups * int(layout.size[kind])
    return Part(kind, nodes, count, tuple(range(first, first + count)))
