"""The dealing of a chain of layers to groups of unlike GPUs whose largest load is the least within a limit.

The limit is on a sum over layers and borders, such as the time until the first token. With stages of layers
i to j on kind k, of load at most L and within memory, the least sum over dealings of the first j layers to
u_k groups of each kind is

    F(0, 0) = 0,    F(j, u) = min over i < j and k of  F(i, u - e_k) + h_i + sum of c_kl for i <= l < j

and the answer is the least load L of a stage for which some F(layers, u) is within the limit: such loads are
bisected. For layers that take 1 and 1 ms on a fast GPU, and 3 and 3 on a slow one, one group each, a limit of
2 leaves both on the fast one (L = 2), a limit of 4 one on each (L = 3), as no other dealing is faster.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.workload.graph import Floats

SLACK = 1e-9  # of rounding


class DealtStage(NamedTuple):
    """Layers `first` to before `end` on a group of a kind."""

    kind: int
    first: int
    end: int


@dataclass(frozen=True, eq=False)
class LimitedChain:
    """What layers take on groups of each kind.

    Parameters
    ----------
    times, limited
        What a layer adds to the load of its stage, and to the sum that is limited, shape (kinds, layers).
    sizes
        The bytes of each layer, shape (layers,).
    room, groups
        For each kind the bytes of a group, and the number of groups.
    paid
        What the border before a layer adds to the load of a stage on each side of it, 0 before the first,
        shape (kinds, layers).
    crossed
        What it adds to the sum, shape (layers,).
    """

    times: Floats
    limited: Floats
    sizes: Floats
    room: Floats
    groups: tuple[int, ...]
    paid: Floats
    crossed: Floats

    def dealt(self, limit: float) -> list[DealtStage] | None:
        """Return the stages of the best dealing whose sum is within a limit; None if there is none.

        Examples
        --------
        >>> times = np.array([[1.0, 1.0], [3.0, 3.0]])
        >>> free, none = np.ones(2), np.zeros(2)
        >>> chain = LimitedChain(times, times, free, 9 * free, (1, 1), 0 * times, none)
        >>> [len(chain.dealt(limit) or []) for limit in (1, 2, 4)]
        [0, 1, 1]
        """
        steps = np.unique(self._loads[np.isfinite(self._loads)]).tolist()
        least = bisect_left(steps, True, key=lambda most: self._sums(most)[-1].min() <= limit * (1 + SLACK))
        return self._stages(steps[least]) if least < len(steps) else None

    @cached_property
    def _loads(self) -> Floats:
        """Return the load of every stage, infinite where it does not fit, shape (kinds, first, end)."""
        count = len(self.sizes)
        before = np.concatenate([np.zeros((len(self.room), 1)), np.cumsum(self.times, axis=1)], axis=1)
        held = np.concatenate([[0.0], np.cumsum(self.sizes)])
        borders = np.concatenate([self.paid, np.zeros((len(self.room), 1))], axis=1)
        loads = before[:, None, :] - before[:, :, None] + borders[:, :, None] + borders[:, None, :]
        fits = held[None, :] - held[:, None] <= self.room[:, None, None] * (1 + SLACK)
        later = np.arange(count + 1)[:, None] < np.arange(count + 1)
        return np.where(fits & later, loads, np.inf)

    def _sums(self, most: float) -> Floats:
        """Return F, whose axes are the layers that are dealt and the groups of each kind that have some."""
        count, loads, spent = len(self.sizes), self._loads, self._spent
        sums = np.full((count + 1, *(groups + 1 for groups in self.groups)), np.inf)
        sums[(0,) * sums.ndim] = 0.0
        for first in range(count):
            for kind in range(len(self.groups)):
                ends = np.flatnonzero(loads[kind, first] <= most)
                if len(ends):
                    each = np.moveaxis(sums, kind + 1, 1)
                    added = spent[kind, ends] - spent[kind, first] + self.crossed[first]
                    reached = each[first, :-1] + added.reshape(-1, *(1,) * (sums.ndim - 1))
                    each[ends, 1:] = np.minimum(each[ends, 1:], reached)
        return sums

    @cached_property
    def _spent(self) -> NDArray[np.float64]:
        """Return the sums of `limited` over the first layers, shape (kinds, layers + 1)."""
        return np.concatenate([np.zeros((len(self.room), 1)), np.cumsum(self.limited, axis=1)], axis=1)

    def _stages(self, most: float) -> list[DealtStage]:
        """Return the stages of the least sum, found from the last one back."""
        sums, loads, spent = self._sums(most), self._loads, self._spent
        used = np.unravel_index(int(np.argmin(sums[-1])), sums.shape[1:])
        left, end, found = [int(each) for each in used], len(self.sizes), []
        while end:
            best = (np.inf, 0, 0)
            for kind in (kind for kind, each in enumerate(left) if each):
                fewer = tuple(each - (k == kind) for k, each in enumerate(left))
                starts = np.flatnonzero(loads[kind, :end, end] <= most)
                ways = sums[(starts, *fewer)] + spent[kind, end] - spent[kind, starts] + self.crossed[starts]
                if len(ways) and ways.min() < best[0]:
                    best = (float(ways.min()), kind, int(starts[ways.argmin()]))
            found.append(DealtStage(best[1], best[2], end))
            left[best[1]] -= 1
            end = best[2]
        return found[::-1]
