"""Curves distilled from measured operations: what part of its roofline a device needs, by sizes.

``curves.json`` beside this file has, for each device, operation and type of numbers, a grid: the sizes of its
axes, and at each point 64 times the binary logarithm of the measured time over that of the roofline plus
2,048, as two digits to the base 64, the last axis first. Between points it is linear in the logarithms of
sizes; beyond them it stays. Axes of the operation beyond those of its curve do not matter.
``scripts/distil_curves.py`` writes the file, which names the sources of its figures.
"""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.workload.graph import Floats

STEPS, MIDDLE = 64, 2048  # values of a factor of two, and that of equality
DIGITS = string.digits + string.ascii_letters + "+-"
FILE = "curves.json"


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of several sizes, linear in their logarithms between the points of a grid.

    Parameters
    ----------
    axes
        The sizes of each axis, ascending.
    values
        The binary logarithm of time over roofline at each point, shape (sizes of axis 0, of axis 1, ...).
    """

    axes: tuple[tuple[float, ...], ...]
    values: Floats

    def factor(self, sizes: Sequence[Any]) -> Floats:
        """Return the time over that of the roofline at some sizes, one entry or array for each axis.

        Examples
        --------
        >>> float(Curve(((1.0, 4.0),), np.array([0.0, 2.0])).factor([2.0]))
        2.0
        """
        at, share = corners(self.axes, sizes)
        return np.asarray(2.0 ** (share * self.values.reshape(-1)[at]).sum(axis=-1))


def corners(
    axes: Sequence[Sequence[float]], sizes: Sequence[Any]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the points of a grid around some sizes, shape (..., corners), and the share of each in a value.

    Examples
    --------
    >>> at, share = corners([(1, 4)], [2.0])
    >>> at.tolist(), share.tolist()
    ([0, 1], [0.5, 0.5])
    """
    low, part = zip(
        *(_between(np.log2(axis), size) for axis, size in zip(axes, sizes, strict=False)), strict=True
    )
    at, share = [], []
    for ends in itertools.product((0, 1), repeat=len(axes)):
        place: Any = 0
        weight: Any = 1.0
        for axis, first, above, end in zip(axes, low, part, ends, strict=True):
            place = place * len(axis) + np.minimum(first + end, len(axis) - 1)
            weight = weight * (above if end else 1 - above)
        at.append(place)
        share.append(weight)
    return np.stack(np.broadcast_arrays(*at), axis=-1), np.stack(np.broadcast_arrays(*share), axis=-1)


def _between(points: Floats, size: Any) -> tuple[Any, Any]:
    """Return the position of the point at or below a size, and how far the size is from it to the next."""
    if len(points) == 1:
        return np.zeros(np.shape(size), dtype=np.int64), np.zeros(np.shape(size))
    x = np.clip(np.log2(np.maximum(size, 1e-9)), points[0], points[-1])
    low = np.clip(np.searchsorted(points, x, side="right") - 1, 0, len(points) - 2)
    return low, (x - points[low]) / (points[low + 1] - points[low])


@cache
def curve_of(device: str, operation: str, dtype: str) -> Curve | None:
    """Return the curve of an operation on a device with measured tables; None if none was measured.

    Examples
    --------
    >>> curve_of("A100-80", "product", "bfloat16").axes[0][0]
    1
    """
    found = _file()["devices"].get(device, {}).get(operation, {}).get(dtype)
    if found is None:
        return None
    axes = tuple(tuple(axis) for axis in found["axes"])
    return Curve(axes, decoded(found["values"]).reshape([len(axis) for axis in axes]))


def decoded(text: str) -> Floats:
    """Return the values of a grid from their digits.

    Examples
    --------
    >>> decoded(encoded(np.array([0.0, -1.5, 2.25]))).tolist()
    [0.0, -1.5, 2.25]
    """
    digits = np.array([DIGITS.index(digit) for digit in text], dtype=np.float64).reshape(-1, 2)
    return (digits[:, 0] * len(DIGITS) + digits[:, 1] - MIDDLE) / STEPS


def encoded(values: Floats) -> str:
    """Return the digits of the values of a grid."""
    whole = np.rint(values.ravel() * STEPS).astype(int) + MIDDLE
    return "".join(DIGITS[value // len(DIGITS)] + DIGITS[value % len(DIGITS)] for value in whole.tolist())


def measured_devices() -> tuple[str, ...]:
    """Return the names of the devices with curves."""
    return tuple(_file()["devices"])


@cache
def _file() -> dict[str, Any]:
    text = resources.files("partitioner.estimation").joinpath(FILE).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
