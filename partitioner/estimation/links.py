"""Transfer times as linear functions of the size, fitted to measured transfers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partitioner.base.argument_types import require_items, require_type
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.estimation.measured import flaw, in_range, measured
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats
from partitioner.workload.transfers import Transfers

Transfer = tuple[str, str, float, float]
RULE = "must be source, destination, size and time"


@dataclass(frozen=True)
class LinkFit:
    """A model of transfer times fitted to measurements.

    Parameters
    ----------
    transfers
        The model, an argument of ``solve`` and ``evaluate``.
    unmeasured
        The pairs of devices, source first, without measurements; their transfers cost nothing.
    """

    transfers: Transfers
    unmeasured: tuple[tuple[str, str], ...]


def fit_link(sizes: ArrayLike, times: ArrayLike) -> tuple[float, float]:
    """Return the least-squares line t = k d + b with k and b of at least 0 (Celeritas, Section 4.2.1).

    If all measurements have the same size, the line goes through the origin.

    Parameters
    ----------
    sizes, times
        Shape (transfers,): the size and the time of each measured transfer, of which there is at least one.

    Returns
    -------
    tuple of float
        k and b.

    Raises
    ------
    WorkloadError
        If there is no measurement, lengths differ, or a value is negative or not finite.

    Examples
    --------
    >>> fit_link([0.0, 100.0, 200.0], [1.0, 3.0, 5.0])
    (0.02, 1.0)
    """
    d, t = measured("sizes", sizes, 1), measured("times", times, 1)
    if len(d) != len(t) or not len(d):
        raise flaw("times", f"{len(t)} values", f"must be one for each of the {len(d)} sizes, at least one")
    with np.errstate(all="ignore"):
        k, b = in_range("times", np.array(_line(d, t))).tolist()
    return k, b


def _line(d: Floats, t: Floats) -> tuple[float, float]:
    """Return the least-squares line; if its slope or intercept is below 0, the best line where that is 0."""
    if (d == d[0]).all():
        return (float(t.mean() / d[0]), 0.0) if d[0] > 0 else (0.0, float(t.mean()))
    centred = d - d.mean()
    slope = float(centred @ (t - t.mean()) / (centred @ centred))
    intercept = float(t.mean() - slope * d.mean())
    if slope < 0:
        return 0.0, float(t.mean())
    return (slope, intercept) if not intercept < 0 else (float(d @ t / (d @ d)), 0.0)


def fit_transfers(devices: Devices, measurements: Iterable[Transfer], *, contention: bool = False) -> LinkFit:
    """Return FastT's communication cost model: a line for each pair of devices (FastT, Section 4).

    Transfers of a pair without measurements cost nothing, so that a placer uses the pair and the next run
    measures it. With this model the costs of edges must be the sizes of tensors, in the unit of the
    measurements (bytes), not times.

    Parameters
    ----------
    devices
        The devices.
    measurements
        For each measured transfer the names of source and destination (of ``devices.names``), size and time.
    contention
        See :class:`partitioner.Transfers`; measured times may already include the effect of contention.

    Raises
    ------
    WorkloadError
        If a measurement names an unknown device, or one twice, or a value is negative or not finite.

    Examples
    --------
    >>> two = Devices.accelerated(2)
    >>> fit = fit_transfers(two, [("accelerator0", "accelerator1", d, 0.5 * d + 2) for d in (2, 6)])
    >>> fit.transfers.slope, fit.transfers.intercept
    (((0.0, 0.5), (0.0, 0.0)), ((0.0, 2.0), (0.0, 0.0)))
    >>> fit.unmeasured
    (('accelerator1', 'accelerator0'),)
    """
    require_type("devices", devices, Devices)
    groups = _by_pair(devices.names, require_items("measurements", measurements))
    count = len(devices.names)
    slope, intercept = np.zeros((count, count)), np.zeros((count, count))
    for pair, values in groups.items():
        slope[pair], intercept[pair] = fit_link([d for d, _ in values], [t for _, t in values])
    missing = tuple(
        (source, destination)
        for s, source in enumerate(devices.names)
        for d, destination in enumerate(devices.names)
        if s != d and (s, d) not in groups
    )
    return LinkFit(Transfers(slope.tolist(), intercept.tolist(), contention), missing)


def _by_pair(
    names: tuple[str, ...], measurements: Iterable[Transfer]
) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """Return the sizes and times of the transfers of each pair of positions of source and destination."""
    number = {name: i for i, name in enumerate(names)}
    groups: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for i, measurement in enumerate(measurements):
        try:
            source, destination, size, time = measurement
            pair = number[source], number[destination]
        except (TypeError, ValueError):
            raise WorkloadError([Flaw(f"measurement {i}", "", shown(measurement), RULE)]) from None
        except KeyError as unknown:
            rule = f"must be one of the devices {', '.join(names)}"
            raise WorkloadError([Flaw(f"measurement {i}", "", shown(unknown.args[0]), rule)]) from None
        if source == destination:
            rule = "must lead from one device to another"
            raise WorkloadError([Flaw(f"measurement {i}", "", shown(measurement), rule)])
        groups.setdefault(pair, []).append((size, time))
    return groups
