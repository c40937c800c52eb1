"""Times of operations on named devices: a roofline times a curve distilled from measurements.

    time = (max(operations / peak, bytes / bandwidth) + overhead) x curve(sizes)

A device whose tables have no balanced experts takes those of a power law that are all on one device. A
device without measured tables takes the curves of the nearest one in architecture with its own peak and
bandwidths; :func:`curve_note` says which.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.errors import OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.curves import Curve, curve_of, measured_devices
from partitioner.estimation.device_operations import (
    AttentionScores,
    Collective,
    DeviceOperation,
    ExpertProducts,
    Traffic,
)
from partitioner.estimation.named_devices import BYTES, NamedDevice, dtype_name, named_device

REST = (
    "bfloat16",
    "float16",
    "float32",
)  # what is not a product is computed with the first that a device has
BANDWIDTH_REACHED = 0.8  # of memory, by elementwise kernels: the systems of aiconfigurator
COLLECTIVE_DTYPE = "float16"  # of the measured collectives, whose times depend on bytes
NEAREST = {  # the curve for a type of numbers for which a device has none
    "float8_block": ("float8", "bfloat16"),
    "float8": ("float8_block", "bfloat16"),
    "float4": ("float8", "bfloat16"),
    "int8": ("float8", "bfloat16"),
}
Operation = DeviceOperation | Collective


def operation_time(
    device: str | NamedDevice,
    operation: Operation,
    dtype: str = "bfloat16",
    *,
    efficiency: float | None = None,
) -> Any:
    """Return the time of an operation on a device in milliseconds.

    Parameters
    ----------
    device
        The name of a device, or its figures.
    operation
        The operation; its sizes may be arrays of equal shape, as the time is then.
    dtype
        The type of the factors of products, and of cached keys and values. With types of one byte or less,
        everything else has two bytes.
    efficiency
        None for the curve. A number above 0: the part of peak and bandwidth that is reached by every
        operation, as in :func:`partitioner.estimation.roofline_time`.

    Raises
    ------
    OptionError
        If the device, or its speed for the type of numbers, is not known.

    Examples
    --------
    >>> from partitioner.estimation import Product
    >>> print(operation_time("A100-80", Product(4096, 4096, 4096)).round(1))
    0.5
    >>> print(operation_time("A100-80", Product(4096, 4096, 4096), efficiency=1).round(3))
    0.441
    """
    figures, kind = named_device(device), dtype_name(dtype)
    if efficiency is not None:
        return roofline_of(figures, operation, kind) / efficiency
    if isinstance(operation, Traffic):
        return roofline_of(figures, operation, kind) / BANDWIDTH_REACHED + operation.overhead
    return base_time(figures, operation, kind) * curve_factor(figures, operation, kind)


def curve_factor(device: NamedDevice, operation: Operation, dtype: str) -> Any:
    """Return the time of an operation over :func:`base_time`, by the curves of the device."""
    tables = tables_of(device)
    curve = _curve(tables, operation, dtype)
    if isinstance(operation, ExpertProducts) and curve is None:  # where no other device waits, skew is little
        operation = replace(operation, routing="power_law", apart=1)
        curve = _curve(tables, operation, dtype)
    return 1.0 if curve is None else curve.factor(operation.axes)


def base_time(device: NamedDevice, operation: Operation, dtype: str) -> Any:
    """Return the milliseconds that a curve multiplies: the roofline and the overhead of a launch."""
    return roofline_of(device, operation, dtype) + operation.overhead


def roofline_of(device: NamedDevice, operation: Operation, dtype: str) -> Any:
    """Return the longer of arithmetic and traffic in milliseconds; of collectives, that of the link."""
    if isinstance(operation, Collective):
        return operation.sent / _link(device) * MS_PER_SECOND
    narrow = dtype in BYTES and BYTES[dtype] < BYTES[REST[0]]
    rest = next((name for name in REST if name in device.peak), dtype) if narrow else dtype
    product = not isinstance(operation, AttentionScores | Traffic)
    traffic = operation.nbytes(BYTES[dtype], BYTES[rest]) / device.bandwidth
    speed = device.speed(dtype if product else rest)
    return np.maximum(operation.flops / speed, traffic) * MS_PER_SECOND


def tables_of(device: NamedDevice) -> str:
    """Return the name of the device whose curves serve for a device.

    That is itself, or the one that it is `like`, or the one whose speed is the nearest.
    """
    known = measured_devices()
    for name in (device.name, device.like):
        if name in known:
            return str(name)
    speed = max(device.peak.values())
    return min(known, key=lambda name: abs(math.log(max(named_device(name).peak.values()) / speed)))


def curve_note(device: str | NamedDevice) -> str:
    """Return whose measured curves give the times of a device.

    Examples
    --------
    >>> curve_note("H100")
    'curves measured on H100'
    >>> curve_note("V100")
    'curves measured on A100-80, scaled to the peak speeds and bandwidths of V100'
    """
    figures = named_device(device)
    name = tables_of(figures)
    more = "" if name == figures.name else f", scaled to the peak speeds and bandwidths of {figures.name}"
    return f"curves measured on {name}{more}"


def _curve(device: str, operation: Operation, dtype: str) -> Curve | None:
    """Return the curve of an operation for a type of numbers, else for the nearest one."""
    if isinstance(operation, Collective):
        found = (curve_of(device, name, COLLECTIVE_DTYPE) for name in (operation.kind, operation.name))
        return next((curve for curve in found if curve is not None), None)
    found = (curve_of(device, operation.kind, name) for name in (dtype, *NEAREST.get(dtype, REST)))
    return next((curve for curve in found if curve is not None), None)


def _link(device: NamedDevice) -> float:
    """Return the bytes a second of the links of a device to the others in its server."""
    link = device.peer or device.host
    if link is None:
        rule = "must have the bytes a second to others in its server (peer, peer_gb_s) for collectives"
        raise OptionError(f"device = {shown(device.name)}: {rule}")
    return link
