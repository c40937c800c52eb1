"""Large neighbourhoods of the incumbent: most supernodes keep their device, the others are placed again.

Given 45 s, 2 of 3 published free splits are 0.1 and 0.2 % worse without them (scripts/ablations.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.methods.loads import part_loads
from partitioner.methods.places import places_of
from partitioner.methods.solvers.search import Search
from partitioner.problem.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class NeighbourhoodEffort:
    """How large neighbourhoods are.

    Measured at half and at twice each value on gnmt inference and six random graphs of up to 30 nodes, free
    splits within 1 %: values, bounds and CPU seconds stay as they are.

    Parameters
    ----------
    first_size, growth, shrinkage
        Pairs of a supernode and a device that are left open at first, and the factors by which they grow and
        shrink.
    device_share
        The share of neighbourhoods of some devices; the others are windows of the order.
    least_gain
        The least fraction by which a neighbourhood must improve the value.
    """

    first_size: float = 200.0
    growth: float = 1.15
    shrinkage: float = 0.8
    device_share: float = 0.6
    least_gain: float = 1e-5


EFFORT = NeighbourhoodEffort()


@dataclass(eq=False)
class Neighbourhoods:
    """A random choice of neighbourhoods, as large as the solver can search in its time.

    Parameters
    ----------
    rng
        Source of the random choices.
    size
        Approximate number of pairs of a supernode and a device that are left open.
    """

    rng: np.random.Generator
    size: float = EFFORT.first_size

    def task(self, search: Search[Any]) -> Any:
        """Return the task to improve the incumbent on some devices, or in a window of the supernodes' order.

        Every device with the largest load takes part, because otherwise nothing could improve.
        """
        problem = search.problem
        home = places_of(problem, search.best or ())
        load = _device_loads(search, home)
        tight = np.asarray((load >= 1 - EFFORT.least_gain).any(axis=0))
        by_devices = self.rng.random() < EFFORT.device_share
        loose = self._devices(home, tight, load.max(axis=0)) if by_devices else self._window(home, tight)
        cutoff = search.value * (1 - EFFORT.least_gain)
        return search.task_near(cutoff, home, loose)

    def learn(self, searched: bool) -> None:
        """Grow the size if the last neighbourhood was searched to the end, else shrink it."""
        self.size *= EFFORT.growth if searched else EFFORT.shrinkage

    def _devices(self, home: Ints, tight: Bools, load: Floats) -> Bools:
        """Return where supernodes may be, (n, devices): those of tight and some other devices on these."""
        chosen = tight.copy()
        spread = self.rng.uniform(0.0, load.max() - load.min(), len(load))
        for device in np.argsort(np.where(tight, np.inf, load + spread)).tolist()[: int((~tight).sum())]:
            enough = chosen.sum() > tight.sum()
            if enough and (chosen[home].sum() + (home == device).sum()) * (chosen.sum() + 1) > self.size:
                break
            chosen[device] = True
        return np.asarray(chosen[home][:, None] & chosen)

    def _window(self, home: Ints, tight: Bools) -> Bools:
        """Return where supernodes may be, (n, devices): those near one on a tight device anywhere."""
        width = max(2, int(self.size / len(tight)))
        centre = int(self.rng.choice(np.flatnonzero(tight[home])))
        inside = np.abs(np.arange(len(home)) - centre) <= width // 2
        return np.repeat(inside[:, None], len(tight), axis=1)


def _device_loads(search: Search[Any], home: Ints) -> Floats:
    """Return the load of each device as a fraction of the largest of its pass, shape (passes, devices)."""
    parts = search.best or ()
    loads = part_loads(search.problem, parts)
    share = np.zeros((len(loads), int(search.problem.count.sum())))
    largest = np.maximum(loads.max(axis=1, keepdims=True), 1e-300)
    share[:, [home[part.nodes[0]] for part in parts]] = loads / largest
    return share
