"""Large neighbourhoods of the incumbent: most supernodes stay, the rest are placed anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.methods.ip.search import Search
from partitioner.methods.ip.task import Mask, Task, homes
from partitioner.methods.loads import part_loads
from partitioner.preprocess.problem import Ints

FIRST_SIZE = 300.0
GROWTH, SHRINKAGE = 1.15, 0.8
LEAST_GAIN = 1e-5


@dataclass(eq=False)
class Neighbourhoods:
    """Chooses neighbourhoods, as large as the solver can search in its time.

    Parameters
    ----------
    rng
        Source of all choices.
    size
        About how many pairs of supernode and device are left open.
    """

    rng: np.random.Generator
    size: float = FIRST_SIZE

    def task(self, search: Search) -> Task:
        """Improve the incumbent: free some devices, or a window of the supernodes' order.

        Every device whose load is the largest is part of it, or nothing could improve.
        """
        problem = search.problem
        home = homes(problem, search.parts or ())
        tight = _tight_devices(search, home)
        loose = self._devices(home, tight) if self.rng.random() < 0.6 else self._window(home, tight)
        cutoff = search.value * (1 - LEAST_GAIN)
        return replace(search.task(), cutoff=cutoff, home=home, loose=loose)

    def learn(self, searched: bool) -> None:
        """Grow after a neighbourhood that was searched to the end, shrink after one that was not."""
        self.size *= GROWTH if searched else SHRINKAGE

    def _devices(self, home: Ints, tight: Mask) -> Mask:
        """Supernodes of a few devices may be on any of these."""
        chosen = tight.copy()
        for device in self.rng.permutation(np.flatnonzero(~tight)).tolist():
            enough = chosen.sum() > tight.sum()
            if enough and (chosen[home].sum() + (home == device).sum()) * (chosen.sum() + 1) > self.size:
                break
            chosen[device] = True
        return np.asarray(chosen[home][:, None] & chosen)

    def _window(self, home: Ints, tight: Mask) -> Mask:
        """Supernodes near one on a tight device may be anywhere."""
        width = max(2, int(self.size / len(tight)))
        centre = int(self.rng.choice(np.flatnonzero(tight[home])))
        inside = np.abs(np.arange(len(home)) - centre) <= width // 2
        return np.repeat(inside[:, None], len(tight), axis=1)


def _tight_devices(search: Search, home: Ints) -> Mask:
    """Shape (devices,): has the device the largest load of a pass?"""
    parts = search.parts or ()
    loads = part_loads(search.problem, parts)
    largest = (loads >= loads.max(axis=1, keepdims=True) * (1 - LEAST_GAIN)).any(axis=0)
    tight = np.zeros(int(search.problem.count.sum()), dtype=bool)
    tight[[home[parts[i].nodes[0]] for i in np.flatnonzero(largest).tolist()]] = True
    return tight
