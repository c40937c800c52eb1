"""Packing of items into the devices' memory, without regard to precedence."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Floats, Ints


def packed(time: Floats, size: Floats, memory: Floats) -> Ints | None:
    """Return devices for items by decreasing size, each where the load stays lowest among those it fits on.

    Parameters
    ----------
    time
        Shape (D, n): time of each item on each device, infinity where it may not run.
    size
        Shape (n,): memory of each item.
    memory
        Shape (D,): memory of each device.

    Returns
    -------
    Ints or None
        Shape (n,): the device of each item; None if some item fits on no device.

    Examples
    --------
    >>> packed(np.ones((2, 3)), np.array([1.0, 2.0, 3.0]), np.array([3.0, 3.0])).tolist()
    [1, 1, 0]
    """
    place = np.zeros(len(size), dtype=np.int64)
    load, room = np.zeros(len(memory)), memory.astype(np.float64)
    for v in np.lexsort((-np.where(np.isfinite(time), time, 0.0).max(axis=0, initial=0.0), -size)).tolist():
        after = np.where(size[v] <= room, load + time[:, v], np.inf)
        d = int(after.argmin())
        if not np.isfinite(after[d]):
            return None
        place[v], load[d] = d, after[d]
        room[d] -= size[v]
    return place
