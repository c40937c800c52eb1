"""The time of transfers between two devices when operators run one by one (objective ``"makespan"``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.device_validation import LARGEST, SMALLEST
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.groups import group_numbers, link_slowdowns

Matrix = Sequence[Sequence[float]]
RULE = (
    "must be a number of at least 0, or one for each pair of devices, "
    f"each of which is 0 or from {SMALLEST:g} to {LARGEST:g}"
)


@dataclass(frozen=True)
class Transfers:
    """A model of transfer times, linear in the size: slope * cost + intercept (Celeritas, Section 4.2.1).

    Parameters
    ----------
    slope
        A factor for the cost of the edge (for its bytes, if costs are bytes): one number for all pairs of
        devices, or a square matrix in the order of `Devices.names`. None: the larger
        `DeviceKind.effective_transfer_factor` of the two devices, times the slowdown of the level that
        separates them, or of the link of their groups; 0 between devices that do not pay for transfers.
    intercept
        The time that every transfer takes in addition: one number for all pairs, or a square matrix.
    contention
        Whether each device has one channel, on which it sends or receives one tensor at a time; otherwise
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
        """Return slope and intercept of every pair, shape (devices, devices) each; 0 on the diagonal.

        Raises
        ------
        WorkloadError
            If a matrix does not have one row and one column for each device.
        """
        require_type("devices", devices, Devices)
        slope = _default_slope(devices) if self.slope is None else _square("slope", self.slope, devices)
        intercept = _square("intercept", self.intercept, devices)
        apart = ~np.eye(len(devices.names), dtype=bool)
        return np.where(apart, slope, 0.0), np.where(apart, intercept, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        return asdict(self)


def _flaw(name: str, value: object, rule: str) -> Flaw:
    return Flaw("transfers", name, shown(value), f"must be {rule}")


def _numbers(given: Any) -> float | tuple[tuple[float, ...], ...] | None:
    """Return the number or the square matrix as plain floats; None if `given` is neither."""
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


def _default_slope(devices: Devices) -> Floats:
    """Return the larger transfer factor of each two devices, times the slowdown of the link."""
    transfer_factor = np.repeat(
        [kind.effective_transfer_factor for kind in devices.kinds], [kind.count for kind in devices.kinds]
    )
    return np.asarray(np.maximum.outer(transfer_factor, transfer_factor) * _slowdown(devices))


def _slowdown(devices: Devices) -> Floats:
    """Return the slowdown between each two devices, by their groups or the outermost level between them."""
    if devices.groups:
        kinds = [group_numbers(devices.groups, kind.name, kind.count) for kind in devices.kinds]
        return link_slowdowns(devices.groups, devices.links)[np.ix_(*[np.concatenate(kinds)] * 2)]
    found = np.ones((len(devices.names), len(devices.names)))
    for level in devices.levels:
        group = np.concatenate(
            [np.arange(kind.count) // max(1, level.size(kind.name)) for kind in devices.kinds]
        )
        found[np.not_equal.outer(group, group)] = level.slowdown
    return found


DEFAULT_TRANSFERS = Transfers()


# Transfers between any devices.


def with_latency(graph: Graph, devices: Devices) -> Graph:
    """Return the graph whose costs have the latency of a message: once for each tensor that is sent.

    Edges of cost 0 send nothing. Edges out of a node that carry different tensors still do.

    Examples
    --------
    >>> graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2)], cost=[0.0, 1.5])
    >>> with_latency(graph, replace(Devices.accelerated(2), link_latency=0.5)).cost.tolist()
    [0.0, 2.0]
    """
    if not devices.link_latency:
        return graph
    source, cost = graph.edges[:, 0], graph.cost
    found = np.where(cost > 0, cost + devices.link_latency, 0.0)
    high, low, after = np.zeros(len(graph)), np.full(len(graph), np.inf), np.full(len(graph), np.inf)
    np.maximum.at(high, source, cost)
    np.minimum.at(low, source, cost)
    np.minimum.at(after, source, found)
    rounded = (low < high)[source] & (cost == high[source]) & (found == after[source])
    return replace(graph, cost=np.where(rounded, np.nextafter(found, np.inf), found))
