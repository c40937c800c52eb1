"""Parts as the device of every supernode, and back; devices are numbered kind by kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.methods.method import Part
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem


def device_kinds(problem: Problem) -> Ints:
    """Return the kind of each device, shape (devices,)."""
    return np.repeat(np.arange(len(problem.count)), problem.count)


def parts_at(problem: Problem, place: Ints) -> list[Part]:
    """Return the parts of the devices in use, given the device of every supernode."""
    return parts_on(device_kinds(problem), place)


def parts_on(kind: Ints, place: Ints) -> list[Part]:
    """Return the same as :func:`parts_at`, given the kind of every device."""
    return [Part(int(kind[d]), np.flatnonzero(place == d)) for d in np.unique(place).tolist()]


def places_of(problem: Problem, parts: Sequence[Part]) -> Ints:
    """Return the device of every supernode, shape (n,): parts take the devices of their kind one by one.

    The parts in excess of the devices of a kind all get its last device.
    """
    place = np.zeros(problem.n, dtype=np.int64)
    following = np.cumsum(problem.count) - problem.count
    last = np.cumsum(problem.count) - 1
    for part in parts:
        place[part.nodes] = min(following[part.kind], last[part.kind])
        following[part.kind] += 1
    return np.clip(place, 0, None)
