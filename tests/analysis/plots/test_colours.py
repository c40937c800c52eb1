"""Colours of devices can be told apart, and from a light and a dark background."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from partitioner.analysis.plots.colours import DEVICES, device_look, mixed, on_top


def lab(colour: str) -> np.ndarray:
    """CIELAB coordinates of a colour, in which distances are about as people see them."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_sixteen_colours_can_be_told_apart() -> None:
    """A difference of 2.3 is just noticeable; any two differ by at least eight times as much."""
    closest = min(float(np.linalg.norm(lab(a) - lab(b))) for a, b in combinations(DEVICES, 2))
    assert len(DEVICES) == 16 and closest > 18


@pytest.mark.parametrize("background", ["#ffffff", "#000000"])
def test_they_stand_out(background: str) -> None:
    assert min(float(np.linalg.norm(lab(a) - lab(background))) for a in DEVICES) > 35


def test_looks_repeat_after_sixty_four() -> None:
    """Until then no two devices look alike, and forward and backward nodes never do."""
    looks = [device_look(i) for i in range(65)]
    assert len(set(looks)) == 64 and looks[64] == looks[0]
    assert len({shape for _, *shapes in looks for shape in shapes}) == 8


def test_mixed_and_on_top() -> None:
    assert mixed("#ff0000", "#0000ff", 0.25) == pytest.approx((0.75, 0, 0.25))
    assert on_top("#ffffff") == "black" and on_top("#000000") == "white"
