"""Metis's way to split a chain of layers: dealt to the devices in proportion to their speed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

import partitioner as pt


def best_proportional(workload: pt.Workload) -> tuple[float | None, float]:
    """Return the least value over all orders of the kinds; None if no split fits, and that without memory.

    Every device gets consecutive layers, at least one; equal devices follow one another. The values are those
    of the evaluator.
    """
    values = [_value(workload, order) for order in _orders(workload.devices)]
    fitting = [value for value, fits in values if fits]
    return min(fitting, default=None), min(value for value, _ in values)


def shares(time: NDArray[np.float64], kinds: list[int]) -> list[int]:
    """Return the first layer of every device, and the number of layers.

    Parameters
    ----------
    time
        Shape (kinds, layers): the time of each layer on each kind.
    kinds
        The kind of each device, in the order of the pipeline.

    Examples
    --------
    >>> shares(np.array([[1.0] * 6, [2.0] * 6]), [0, 1])
    [0, 4, 6]
    """
    speed = 1 / time.sum(axis=1)[kinds]
    wanted = np.cumsum(speed) / speed.sum()
    done = np.cumsum((time / time.sum(axis=1, keepdims=True)).mean(axis=0))
    layers, cuts = time.shape[1], [0]
    for i, share in enumerate(wanted[:-1]):
        nearest = 1 + int(abs(done - share).argmin())
        cuts.append(min(max(nearest, cuts[-1] + 1), layers - (len(kinds) - 1 - i)))
    return [*cuts, layers]


def _orders(devices: pt.Devices) -> Iterator[list[int]]:
    """Yield the kinds of the devices in every order of the kinds."""
    for order in permutations(range(len(devices.kinds))):
        yield [k for k in order for _ in range(devices.kinds[k].count)]


def _value(workload: pt.Workload, kinds: list[int]) -> tuple[float, bool]:
    graph, devices = workload.graph, workload.devices
    rows = [graph.kinds.index(kind.row) for kind in devices.kinds]
    forward = ~graph.backward
    time = np.array([graph.time[row][forward] + graph.time[row][graph.backward] for row in rows])
    cuts = shares(time, kinds)
    used, names = dict.fromkeys(kinds, 0), []
    for kind in kinds:
        names.append(devices.kinds[kind].device(used[kind]))
        used[kind] += 1
    stage = np.searchsorted(cuts, np.arange(time.shape[1]), side="right") - 1
    placement = {
        node: names[stage[i % time.shape[1]]] for i, node in enumerate(graph.ids)
    }  # backward nodes follow in the order of the layers
    found = pt.evaluate(graph, devices, placement)
    return found.value, found.feasible
