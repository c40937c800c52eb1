"""Estimates for a large batch from small ones: a linear fit for every node (Celeritas, Section 4.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partitioner.base.errors import shown
from partitioner.estimation.measured import flaw, in_range, measured
from partitioner.workload.graph import Floats


def predict_memory(batches: Sequence[float], memory: ArrayLike, batch: float) -> Floats:
    """Return the memory of every node at a batch size that is too large to be measured.

    Memory is linear in the batch size. The estimate is a least-squares line for every node, and at least 0.

    Parameters
    ----------
    batches
        The batch sizes of the measurements, at least two different ones.
    memory
        Shape (batches, nodes): the memory of every node at each batch size.
    batch
        The batch size to estimate for.

    Returns
    -------
    Floats
        Shape (nodes,): the memory of every node, in the unit of `memory`.

    Raises
    ------
    WorkloadError
        If shapes differ, a value is negative or not finite, or there are not two batch sizes.

    Examples
    --------
    A layer with weights of 100 bytes and 8 bytes of activations a sample, and one of weights only:

    >>> predict_memory([4, 8], [[132, 50], [164, 50]], 512).tolist()
    [4196.0, 50.0]
    """
    return _predicted("memory", batches, memory, batch)


def predict_time(batches: Sequence[float], time: ArrayLike, batch: float) -> Floats:
    """Return an estimate of the time of every node at a batch size, like :func:`predict_memory`.

    Times are less linear in the batch size than memory is: Celeritas reports errors of 8 % to 14 % on
    average, and measures times again under the placement that it finds with the estimates (its second step).

    Examples
    --------
    >>> predict_time([1, 2, 3], [[0.5], [0.75], [1.0]], 9).tolist()
    [2.5]
    """
    return _predicted("time", batches, time, batch)


def _predicted(name: str, batches: Sequence[float], values: ArrayLike, batch: float) -> Floats:
    """Return the values of the fitted lines at `batch`, at least 0."""
    x, y = measured("batches", batches, 1), measured(name, values, 2)
    wanted = float(measured("batch", batch, 0))
    if len(y) != len(x):
        raise flaw(name, f"{len(y)} rows", f"must have one for each of the {len(x)} batch sizes")
    if len(np.unique(x)) < 2:
        raise flaw("batches", shown(x.tolist()), "must be at least two different batch sizes")
    with np.errstate(all="ignore"):
        centred = x - x.mean()
        slope = centred @ (y - y.mean(axis=0)) / (centred @ centred)
        found = np.maximum(y.mean(axis=0) + slope * (wanted - x.mean()), 0.0)
    return in_range(name, found)
