"""Items packed where memory is tight, whatever their order."""

from __future__ import annotations

import numpy as np

from partitioner.problem.arrays import Floats, Ints


def packed(time: Floats, size: Floats, memory: Floats) -> Ints | None:
    """Put items on devices by decreasing size, each where the load ends lowest of all that have room.

    Parameters
    ----------
    time
        Shape (D, n): of each item on each device, infinity where it may not run.
    size
        Shape (n,): memory of each item.
    memory
        Shape (D,): of each device.

    Returns
    -------
    Ints or None
        Shape (n,): the device of each item; None if an item finds no room.

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
