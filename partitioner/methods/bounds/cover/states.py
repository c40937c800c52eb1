"""All sets of supernodes that one device can hold, as the ways through a layered graph of states.

Supernodes are decided one after another, in or out of the set. A net is open between its first and
its last pin; of its decided pins the rest of the decision only needs to know whether all are out,
all are in, or the net is torn and paid for (`steps.py`). Networks are narrow: a dozen nets are open at
a time, so the states are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partitioner.methods.bounds.cover.steps import IN, OUT, DecisionStep, advance
from partitioner.problem.arrays import Floats, Ints

OFTEN = 64  # states between two looks at the clock


@dataclass(frozen=True, eq=False)
class CoverStates:
    """A layered graph whose paths are the sets that one device can hold at a load of at most T.

    Parameters
    ----------
    start
        Shape (n + 2,): the states before supernode v are ``start[v]`` to ``start[v + 1]``.
    after
        Shape (states, 2): the state that follows if the supernode is out, or in; -1 for none.
    load
        Shape (states, 2): what that adds to the load.
    rest
        Shape (states,): the least load that any way to the end adds.
    """

    start: Ints
    after: Ints
    load: Floats
    rest: Floats


Layer = tuple[Ints, Floats]


@dataclass(frozen=True, eq=False)
class Ways:
    """The states after each supernode, whatever ways lead to them: enumerated once for all thresholds.

    Parameters
    ----------
    layers
        For each supernode what follows its states, and the load that adds, as in :class:`CoverStates`;
        numbers are within the next layer.
    """

    layers: list[Layer]

    def within(self, threshold: float) -> CoverStates:
        """The ways whose load is no larger than a threshold."""
        return _joined(_pruned(self.layers, threshold))


def enumerate_ways(
    steps: list[DecisionStep],
    time: Floats,
    threshold: float,
    most: int,
    left: Callable[[], float] = lambda: np.inf,
) -> Ways | None:
    """The ways through all states; None if there are more than `most`, or no seconds are `left`.

    Parameters
    ----------
    steps
        What happens at each supernode.
    time
        Shape (n,): the load of each supernode, infinity if it may not be in the set.
    threshold
        No larger load is of interest.
    """
    layers: list[Layer] = []
    current = [0]
    for step, here in zip(steps, time.tolist(), strict=True):
        following: dict[int, int] = {}
        after = np.full((len(current), 2), -1, dtype=np.int64)
        load = np.zeros((len(current), 2))
        for i, state in enumerate(current):
            if i % OFTEN == 0 and left() <= 0:
                return None
            for bit in (OUT, IN):
                new, paid = advance(state, bit, step)
                paid += here * bit if bit else 0.0
                if paid <= threshold:
                    after[i, bit] = following.setdefault(new, len(following))
                    load[i, bit] = paid
        layers.append((after, load))
        current = list(following)
        most -= len(current)
        if most < 0:
            return None
    return Ways(layers)


def _pruned(layers: list[Layer], threshold: float) -> list[tuple[Ints, Floats, Floats]]:
    """The layers without the ways whose load must exceed the threshold, and the least load from there on."""
    so_far = [np.zeros(1)]
    for after, load in layers:
        least = np.full(int(after.max(initial=-1)) + 1, np.inf)
        for bit in (OUT, IN):
            way = after[:, bit] >= 0
            np.minimum.at(least, after[way, bit], (so_far[-1] + load[:, bit])[way])
        so_far.append(least)
    rest = np.zeros(len(so_far[-1]))
    number = np.where(so_far[-1] <= threshold, 0, -1)
    pruned: list[tuple[Ints, Floats, Floats]] = []
    for (after, load), before in zip(reversed(layers), reversed(so_far[:-1]), strict=True):
        ahead = np.where(after >= 0, load + rest[after], np.inf)
        ahead[before[:, None] + ahead > threshold] = np.inf
        after = np.where(np.isfinite(ahead), number[after], -1)
        rest = ahead.min(axis=1)
        keep = np.isfinite(rest)
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        pruned.append((after[keep], load[keep], rest[keep]))
    return pruned[::-1]


def _joined(layers: list[tuple[Ints, Floats, Floats]]) -> CoverStates:
    """All layers in one array, with a single state at the end."""
    start = np.cumsum([0, *(len(after) for after, _, _ in layers), 1])
    after = [np.where(part >= 0, part + start[v + 1], -1) for v, (part, _, _) in enumerate(layers)]
    return CoverStates(
        start=start.astype(np.int64),
        after=np.concatenate([*after, np.full((1, 2), -1)]),
        load=np.concatenate([*(load for _, load, _ in layers), np.zeros((1, 2))]),
        rest=np.concatenate([*(rest for _, _, rest in layers), np.zeros(1)]),
    )
