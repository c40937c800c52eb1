"""The prices of nets for the stages of a part of the pipeline, by where the pins are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.dp.pipeline.arrays import Bools
from partitioner.problem.arrays import Floats
from partitioner.problem.problem import Nets


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
