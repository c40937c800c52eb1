"""What the stages of a part of the pipeline pay for each net, by where its pins are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.problem.arrays import Floats
from partitioner.problem.problem import Nets


class Prices(NamedTuple):
    """By how much transfers between a group of devices and what is outside it are slower.

    Parameters
    ----------
    enter
        Shape (E,): of a tensor that a stage of the group brings in, if it is made outside the group.
    leave
        Shape (E,): of one that it sends out; 1 if nothing outside the group reads it.
    """

    enter: Floats
    leave: Floats


def no_prices(nets: Nets) -> Prices:
    """Return the prices where all devices are in the group."""
    return Prices(np.ones(len(nets.cost)), np.ones(len(nets.cost)))


def part_prices(nets: Nets, whole: Prices, within: Bools, share: Bools, slowdown: float) -> Prices:
    """Return the prices of a part of a group, which holds the supernodes `share` of those `within` the group.

    What holds for any device of the part: a net whose other pins are in the same part costs 1 there.

    Parameters
    ----------
    nets, whole
        The nets, and the prices of the group.
    within, share
        Shape (n,) each.
    slowdown
        Of links between parts of the group.
    """
    pins = nets.pins
    beside = np.bincount(pins.owners(), (within & ~share)[pins.items], len(nets.cost)) > 0
    enter = np.where(within[nets.source], slowdown, whole.enter)
    leave = np.where(beside, np.maximum(whole.leave, slowdown), whole.leave)
    return Prices(np.where(share[nets.source], 1.0, enter), leave)


def spanning_prices(nets: Nets, whole: Prices, within: Bools, slowdown: float) -> Prices:
    """Return the prices of a stage whose own devices are in several parts of a group."""
    enter = np.where(within[nets.source], slowdown, whole.enter)
    return Prices(enter, np.maximum(whole.leave, slowdown))
