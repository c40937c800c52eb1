"""Numbers in boxes, drawn if the box is large enough at the current size and zoom of the figure."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import PathCollection
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from partitioner.workload.graph import Bools, Floats, Ints

SIZES = (9, 8, 7, 6, 5)
MARGIN = 1.25
ENOUGH = 0.9


class Numerals(PathCollection):
    """The artist that draws all numbers of a picture.

    Parameters
    ----------
    numbers
        Shape (n,): the numbers.
    boxes
        Shape (n, 4): left, right, bottom and top of each number's box, in data units.
    colors
        Shape (n, 3): red, green and blue of each number's colour.
    """

    def __init__(self, numbers: Ints, boxes: Floats, colors: Floats) -> None:
        super().__init__([], linewidths=0)
        self.numbers, self.boxes, self.colors = numbers, boxes, colors

    def fitting(self, points: float) -> tuple[int, Bools]:
        """Return the size of the numbers in points, and which boxes can hold any number of that size.

        A point has `points` pixels.
        """
        assert self.axes is not None
        corners = self.axes.transData.transform(self.boxes.reshape(-1, 2, 2).swapaxes(1, 2).reshape(-1, 2))
        space = np.abs(np.diff(corners.reshape(-1, 2, 2), axis=1))[:, 0] / points
        widest = np.unique(self.numbers)[-100:].tolist()
        found = {}
        for size in SIZES:
            ink = np.array(max(_extent(number, size) for number in widest))
            found[size] = np.asarray((ink * MARGIN <= space).all(axis=1))
        most = found[SIZES[-1]].sum()
        size = next(size for size in SIZES if found[size].sum() >= ENOUGH * most)
        return size, found[size]

    def draw(self, renderer: RendererBase) -> None:
        """Draw the numbers that fit into their boxes."""
        if not len(self.numbers):
            return
        points = float(np.asarray(renderer.points_to_pixels(1.0)))
        size, fits = self.fitting(points)
        self.set_paths([_numeral(number, size) for number in self.numbers[fits].tolist()])
        self.set_facecolor(list(map(tuple, self.colors[fits].tolist())))
        self.set_offsets(self.boxes[fits].reshape(-1, 2, 2).mean(axis=2))
        self.set_transform(Affine2D().scale(points))
        super().draw(renderer)


@cache
def _numeral(number: int, size: int) -> Path:
    """Return the outline of a number in points, centred at the origin."""
    path = TextPath((0, 0), str(number), size=size)
    middle = path.get_extents().get_points().mean(axis=0)
    return path.transformed(Affine2D().translate(*-middle))


@cache
def _extent(number: int, size: int) -> tuple[float, float]:
    extent = _numeral(number, size).get_extents()
    return extent.width, extent.height
