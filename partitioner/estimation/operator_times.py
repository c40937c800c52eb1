"""Times of a graph's operators, of which arithmetic, memory traffic and the sizes of products are known.

    time = sum of (max(f_i / peak, b_i / bandwidth) + overhead) x curve(sizes of i) over its products i

with f_i of its operations and the same share b_i of its bytes. An operator without arithmetic is memory
traffic; arithmetic without sizes is counted as that of a product of two square matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.device_operations import AttentionScores, Product, Traffic
from partitioner.estimation.device_time import BANDWIDTH_REACHED, curve_factor
from partitioner.estimation.named_devices import NamedDevice, dtype_name
from partitioner.estimation.roofline import roofline_time
from partitioner.workload.graph import Floats


class SizedPart(NamedTuple):
    """Operations of a product, or of the scores of attention, whose sizes say how fast they are.

    `steps`: the number of such products, one after the other, as in a recurrence.
    """

    flops: float
    sizes: Product | AttentionScores
    steps: int = 1


class OperatorWork(NamedTuple):
    """What an operator computes and moves: operations, bytes, the parts whose sizes are known, its type."""

    flops: float
    nbytes: float
    parts: tuple[SizedPart, ...]
    dtype: str


def operator_times(
    works: Sequence[OperatorWork], device: NamedDevice, efficiency: float | None = None
) -> Floats:
    """Return the milliseconds of each operator on a device.

    `efficiency` None is for the measured curves; a number is the part of peak and bandwidth that each of them
    reaches, as in :func:`partitioner.estimation.roofline_time`.

    Raises
    ------
    OptionError
        If the efficiency is not in its range, or the device has no speed for a type.

    Examples
    --------
    >>> from partitioner.estimation import Product, named_device
    >>> part = SizedPart(2 * 4096.0**3, Product(4096, 4096, 4096))
    >>> work = OperatorWork(part.flops, 6 * 4096.0**2, (part,), "bfloat16")
    >>> operator_times([work], named_device("A100-80")).round(2).tolist()
    [0.51]
    """
    if efficiency is None:
        known = {work: _time(work, device) for work in dict.fromkeys(works)}
        return np.array([known[work] for work in works], dtype=np.float64)
    found = np.zeros(len(works))
    kinds = np.array([work.dtype for work in works])
    for kind in dict.fromkeys(kinds.tolist()):
        own = np.flatnonzero(kinds == kind)
        flops, nbytes = ([getattr(works[int(i)], name) for i in own] for name in ("flops", "nbytes"))
        found[own] = roofline_time(flops, nbytes, device, kind, efficiency=efficiency)
    return found


def _time(work: OperatorWork, device: NamedDevice) -> float:
    if not work.flops:
        traffic = work.nbytes / (BANDWIDTH_REACHED * device.bandwidth) * MS_PER_SECOND
        return traffic + Traffic.overhead * (work.nbytes > 0)
    rest = work.flops - sum(part.flops for part in work.parts)
    parts = [*work.parts, SizedPart(rest, _square(rest))] if rest > 1e-9 * work.flops else work.parts
    kind = dtype_name(work.dtype)
    speed = device.speed(kind)
    total = 0.0
    for part in parts:
        moved = work.nbytes * part.flops / work.flops / device.bandwidth
        base = max(part.flops / speed, moved) * MS_PER_SECOND + part.steps * part.sizes.overhead
        total += base * float(curve_factor(device, part.sizes, kind))
    return total


def _square(flops: float) -> Product:
    """Return the product of square matrices with this number of operations."""
    side = (flops / 2) ** (1 / 3)
    return Product(side, side, side)
