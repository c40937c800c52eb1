"""Records of the search over levels: parts of a pipeline in a group, and labels of their ideals."""

from __future__ import annotations

from typing import NamedTuple

from partitioner.methods.dp.pipeline.levels.prices import Prices


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
