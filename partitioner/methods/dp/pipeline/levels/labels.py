"""Parts of a pipeline that lie in a group of devices, and ways to reach their ideals."""

from __future__ import annotations

from typing import NamedTuple

from partitioner.methods.dp.pipeline.levels.prices import Prices


class Stretch(NamedTuple):
    """A part of the pipeline that lies in one group of a level.

    Parameters
    ----------
    level
        The level; the number of levels for all devices.
    low, high
        It holds what `high` has and `low` has not.
    first, end
        The positions of the smallest groups that it may use.
    behind
        The devices behind it.
    prices
        What its stages pay for what is outside.
    """

    level: int
    low: int
    high: int
    first: int
    end: int
    behind: int
    prices: Prices


class Label(NamedTuple):
    """Groups before `position` hold an ideal, on `devices` more devices in `stages` stages."""

    position: int
    devices: int
    stages: int


class End(NamedTuple):
    """A way to hold a segment: what it adds to a label, and its value."""

    label: Label
    value: float


class LabelOrigin(NamedTuple):
    """How a label was reached: from which one, at which position the segment begins, and its stage's kind.

    The kind is -1 for a segment inside a group.
    """

    ideal: int
    label: Label
    position: int
    kind: int
