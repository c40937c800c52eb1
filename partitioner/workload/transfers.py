"""How tensors travel between two devices while operators run one by one (objective ``"makespan"``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.devices import LARGEST, SMALLEST, Devices
from partitioner.workload.graph import Floats

Matrix = Sequence[Sequence[float]]
RULE = (
    "must be a number of at least 0, or one for each pair of devices, "
    f"each of which is 0 or from {SMALLEST:g} to {LARGEST:g}"
)


@dataclass(frozen=True)
class Transfers:
    """The time of a transfer, linear in its size: t = slope * cost + intercept (Celeritas, Section 4.2.1).

    Parameters
    ----------
    slope
        A factor for the cost of the edge (its bytes, where costs are bytes): one for all pairs of devices,
        or a square of them in the order of `Devices.names`. None: what the dearer end of the link pays
        (`DeviceKind.effective_transfer_factor`), times the slowdown of the level it crosses; 0
        between devices that do not pay.
    intercept
        What every transfer takes beside: one for all pairs, or a square.
    contention
        Whether each device has one channel, on which it sends or receives one tensor at a time; else
        transfers do not delay one another.

    Raises
    ------
    WorkloadError
        If a field is not of its type or range.

    Examples
    --------
    >>> slope, intercept = Transfers(slope=0.5, intercept=1.0).times(Devices.accelerated(2))
    >>> slope.tolist(), intercept.tolist()
    ([[0.0, 0.5], [0.5, 0.0]], [[0.0, 1.0], [1.0, 0.0]])
    """

    slope: float | Matrix | None = None
    intercept: float | Matrix = 0.0
    contention: bool = False

    def __post_init__(self) -> None:
        flaws = (
            []
            if isinstance(self.contention, bool)
            else [_flaw("contention", self.contention, "True or False")]
        )
        for name in ("slope", "intercept"):
            given = getattr(self, name)
            if given is None and name == "slope":
                continue
            values = _numbers(given)
            if values is None:
                flaws.append(Flaw("transfers", name, shown(given), RULE))
            else:
                object.__setattr__(self, name, values)
        if flaws:
            raise WorkloadError(flaws)

    def times(self, devices: Devices) -> tuple[Floats, Floats]:
        """Slope and intercept of every pair, shape (devices, devices) each; 0 from a device to itself.

        Raises
        ------
        WorkloadError
            If a square has not one row and column for each device.
        """
        require_type("devices", devices, Devices)
        slope = _usual(devices) if self.slope is None else _square("slope", self.slope, devices)
        intercept = _square("intercept", self.intercept, devices)
        apart = ~np.eye(len(devices.names), dtype=bool)
        return np.where(apart, slope, 0.0), np.where(apart, intercept, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data for JSON."""
        return asdict(self)


def _flaw(name: str, value: object, rule: str) -> Flaw:
    return Flaw("transfers", name, shown(value), f"must be {rule}")


def _numbers(given: Any) -> float | tuple[tuple[float, ...], ...] | None:
    """The number or square as plain floats; None if it is neither."""
    try:
        values = np.array(given)
    except (TypeError, ValueError):
        return None
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    if values.dtype.kind not in "iuf" or not (values.ndim == 0 or square):
        return None
    values = values.astype(np.float64)
    if not ((values == 0) | ((values >= SMALLEST) & (values <= LARGEST))).all():
        return None
    return float(values) if values.ndim == 0 else tuple(map(tuple, values.tolist()))


def _square(name: str, given: float | Matrix, devices: Devices) -> Floats:
    count = len(devices.names)
    values = np.asarray(given, dtype=np.float64)
    if values.ndim and len(values) != count:
        rule = f"must have one row and column for each of the {count} devices"
        raise WorkloadError([Flaw("transfers", name, f"{len(values)} rows", rule)])
    return np.broadcast_to(values, (count, count))


def _usual(devices: Devices) -> Floats:
    """What the dearer end pays, times the slowdown of the link."""
    transfer_factor = np.repeat(
        [kind.effective_transfer_factor for kind in devices.kinds], [kind.count for kind in devices.kinds]
    )
    return np.asarray(np.maximum.outer(transfer_factor, transfer_factor) * _slowdown(devices))


def _slowdown(devices: Devices) -> Floats:
    """Shape (devices, devices): of the outermost level that parts the two."""
    found = np.ones((len(devices.names), len(devices.names)))
    for level in devices.levels:
        group = np.concatenate(
            [np.arange(kind.count) // max(1, level.size(kind.name)) for kind in devices.kinds]
        )
        found[np.not_equal.outer(group, group)] = level.slowdown
    return found


BY_FARE = Transfers()
