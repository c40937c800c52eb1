"""Packing keeps to memory and to the devices that may run an item, and says so where it cannot."""

from __future__ import annotations

import numpy as np

from partitioner.methods.first_plan.packing import packed


def test_what_is_packed_fits() -> None:
    """On random items with room for all; where one item is larger than every device there is no packing."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        time = np.where(rng.random((3, 12)) < 0.2, np.inf, rng.random((3, 12)))
        time[0] = 1.0
        size, memory = rng.random(12), np.array([12.0, 2.0, 3.0])
        place = packed(time, size, memory)
        assert place is not None
        assert np.isfinite(time[place, np.arange(12)]).all()
        assert (np.bincount(place, size, 3) <= memory).all()
        assert packed(time, np.append(size[1:], 20.0), memory) is None
