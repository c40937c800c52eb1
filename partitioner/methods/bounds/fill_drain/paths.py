"""The paths through a schedule that bound its makespan, as data and compiled.

A device of a stage runs `count` samples forward and backward, which take `load` each (transfers added or in
parallel), the stages before it take `before` for a sample, and those behind it `behind`, both passes
together. Under 1F1B a device runs `ahead` further forward passes between the two passes of a sample, but
for the last samples. A path may leave the row of a device at a forward pass, lead through later stages,
turn at one of them, and return to a backward pass of the device.
"""

from __future__ import annotations

from typing import NamedTuple

from partitioner.base.compiled import njit
from partitioner.workload.in_flight import HOLD_A_BATCH

STREAM, PHASES, TURNS = range(3)  # which passes of a stage a path through later stages leaves out


class Way(NamedTuple):
    """What a path through later stages leaves out, if no stage has replicas and if some may have."""

    alone: int
    replicated: int


WAYS = {
    "inference": Way(STREAM, STREAM),
    **dict.fromkeys(HOLD_A_BATCH, Way(STREAM, PHASES)),
    **dict.fromkeys(("1f1b", "1f1b_async"), Way(TURNS, TURNS)),
}


@njit(cache=True, inline="always")
def longest_path(way, count, ahead, before, behind, load, busy, longer, exchange):  # type: ignore[no-untyped-def]
    """Return a lower bound on the makespan of a schedule, by one of its stages.

    Parameters
    ----------
    way
        What a path through later stages leaves out.
    count, ahead
        How many samples a device of the stage runs, and how many devices behind it there are for each of its
        own, rounded up.
    before, behind
        The time that the stages before and behind take for a sample.
    load, busy
        The time that the stage takes for a sample, with transfers in parallel if they are, and without
        transfers if they are.
    longer
        The longer of the processing times of the two passes of a sample.
    exchange
        The time of an exchange of weights.
    """
    if way == STREAM:
        return before + behind + count * load
    found = before + count * load + (count - 1) * exchange
    left_out = count - 1 if way == PHASES else min(ahead, count - 1)
    return max(found, before + behind + count * busy - left_out * (busy - longer))
