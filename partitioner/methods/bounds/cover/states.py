"""All sets of supernodes that one device can hold, as the paths through a layered graph of states.

Supernodes are decided one after another, in or out of the set. A net is open between its first and
its last pin; a state records whether its decided pins are all out, all in, or on both sides, so that the
net is torn and paid for (`steps.py`). Few nets of a usual network are open at a time (about a dozen), so
there are few states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partitioner.methods.bounds.cover.steps import IN, OUT, DecisionStep, advance
from partitioner.problem.arrays import Floats, Ints

OFTEN = 64  # states between two readings of the clock


@dataclass(frozen=True, eq=False)
class CoverStates:
    """A layered graph whose paths are the sets that one device can hold at a load of at most T.

    Parameters
    ----------
    start
        Shape (n + 2,): the states before supernode v are ``start[v]`` to ``start[v + 1]``.
    after
        Shape (states, 2): the next state if the supernode is out, and if it is in; -1 if there is none.
    load
        Shape (states, 2): the load that each of the two choices adds.
    rest
        Shape (states,): the least load that any path from the state to the end adds.
    """

    start: Ints
    after: Ints
    load: Floats
    rest: Floats


Layer = tuple[Ints, Floats]


@dataclass(frozen=True, eq=False)
class Ways:
    """The graph of states for the largest threshold, from which that of each threshold is made.

    Parameters
    ----------
    layers
        For each supernode the next states and the loads added, as in :class:`CoverStates`; states are
        numbered within their layer.
    """

    layers: list[Layer]

    def within(self, threshold: float) -> CoverStates:
        """Return the graph with only the paths whose load is at most the threshold."""
        return _joined(_pruned(self.layers, threshold))


def enumerate_ways(
    steps: list[DecisionStep],
    time: Floats,
    threshold: float,
    most: int,
    left: Callable[[], float] = lambda: np.inf,
) -> Ways | None:
    """Return the graph of states; None if there are more than `most` states, or no seconds are `left`.

    Parameters
    ----------
    steps
        The changes of the state at each supernode.
    time
        Shape (n,): the load of each supernode, infinity if it may not be in the set.
    threshold
        The largest load; a single step that adds more is left out.
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
    """Return the layers without paths that exceed the threshold, and the least load from each state on."""
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
    """Return all layers joined in single arrays, with one state at the end."""
    start = np.cumsum([0, *(len(after) for after, _, _ in layers), 1])
    after = [np.where(part >= 0, part + start[v + 1], -1) for v, (part, _, _) in enumerate(layers)]
    return CoverStates(
        start=start.astype(np.int64),
        after=np.concatenate([*after, np.full((1, 2), -1)]),
        load=np.concatenate([*(load for _, load, _ in layers), np.zeros((1, 2))]),
        rest=np.concatenate([*(rest for _, _, rest in layers), np.zeros(1)]),
    )
