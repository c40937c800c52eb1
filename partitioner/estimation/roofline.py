"""Times by a roofline: an operation takes as long as its arithmetic or its memory traffic does."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from partitioner.base.errors import OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.measured import flaw, measured
from partitioner.estimation.named_devices import NamedDevice, named_device
from partitioner.workload.graph import Floats


def roofline_time(
    flops: ArrayLike,
    nbytes: ArrayLike,
    device: str | NamedDevice,
    dtype: str = "bfloat16",
    *,
    efficiency: float = 1.0,
) -> Floats:
    """Return the time of each operation in milliseconds: the longer of arithmetic and memory traffic.

    This is ``max(flops / (peak * efficiency), nbytes / (bandwidth * efficiency))``. At efficiency 1 it is a
    lower bound on what the device takes. Launches, caches and unfavourable shapes are not in it.

    Parameters
    ----------
    flops
        Floating-point operations of each operation; a multiplication with an addition counts as two.
    nbytes
        Bytes that each operation reads from the device's memory and writes to it, of the same shape.
    device
        The name of a device, such as ``"H100"``, or its figures.
    dtype
        The type of the numbers, such as ``"bfloat16"`` or ``"torch.float32"``.
    efficiency
        The part of peak and bandwidth that is reached, above 0 and at most 1.

    Raises
    ------
    OptionError
        If device, type or efficiency are not known or not in their range.
    WorkloadError
        If operations or bytes are negative or not finite.

    Examples
    --------
    >>> roofline_time([312e9, 0.0], [0.0, 2039e6], "A100-80").tolist()
    [1.0, 1.0]
    """
    figures = named_device(device)
    sound = isinstance(efficiency, int | float) and not isinstance(efficiency, bool) and 0 < efficiency <= 1
    if not sound:
        raise OptionError(f"efficiency = {shown(efficiency)}: must be a number above 0 and at most 1")
    arithmetic = measured("flops", flops, _dimensions(flops)) / figures.speed(dtype)
    traffic = measured("nbytes", nbytes, _dimensions(nbytes)) / figures.bandwidth
    if arithmetic.shape != traffic.shape:
        raise flaw("nbytes", f"shape {traffic.shape}", f"must have shape {arithmetic.shape}, as flops")
    return np.asarray(np.maximum(arithmetic, traffic) / efficiency * MS_PER_SECOND)


def _dimensions(values: ArrayLike) -> int:
    try:
        return np.ndim(values)
    except ValueError:  # rows of different lengths, which `measured` refuses
        return 1
