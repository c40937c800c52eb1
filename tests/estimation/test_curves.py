"""A curve has its values at its points, is linear in logarithms between them, and stays beyond them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner.estimation.curves import Curve, corners, curve_of, measured_devices
from partitioner.estimation.device_time import COLLECTIVE_DTYPE

AXES = ((1.0, 8.0, 64.0), (2.0, 32.0), (5.0,))
VALUES = np.array([[[0.0], [1.0]], [[-1.0], [2.0]], [[0.5], [0.25]]])


@pytest.mark.parametrize("place", [*itertools.product(range(3), range(2), range(1))])
def test_a_point_has_its_value(place: tuple[int, ...]) -> None:
    sizes = [axis[i] for axis, i in zip(AXES, place, strict=True)]
    assert Curve(AXES, VALUES).factor(sizes) == pytest.approx(2 ** VALUES[place])


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4), st.floats(0.01, 100))
def test_between_points_one_axis_after_the_other(first: float, second: float, third: float) -> None:
    """Numpy's linear interpolation along the second axis, then along the first; it stays beyond the ends."""
    logs = [[math.log2(point) for point in axis] for axis in AXES]
    rows = [np.interp(math.log2(second), logs[1], VALUES[i, :, 0]) for i in range(3)]
    value = np.interp(math.log2(first), logs[0], rows)
    assert Curve(AXES, VALUES).factor([first, second, third]) == pytest.approx(2**value)


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_shares_add_up_to_one(first: float, second: float) -> None:
    at, share = corners(AXES, [first, second, 1.0])
    assert share.sum() == pytest.approx(1) and (share >= 0).all()
    assert at.min() >= 0 and at.max() < VALUES.size


def test_arrays_of_sizes_have_arrays_of_factors() -> None:
    curve = Curve(AXES, VALUES)
    many = curve.factor([np.array([1.0, 3.0]), np.array([4.0, 64.0]), np.array([5.0, 5.0])])
    assert many.tolist() == [curve.factor([1.0, 4.0, 5.0]), curve.factor([3.0, 64.0, 5.0])]


def test_every_measured_device_has_products_and_attention_and_collectives() -> None:
    names = ("product", "prompt", "generation", "experts")
    for device in measured_devices():
        assert all(curve_of(device, name, "bfloat16") is not None for name in names)
        assert curve_of(device, "all_reduce", COLLECTIVE_DTYPE) is not None
    assert curve_of("A100-80", "product", "float8") is None
