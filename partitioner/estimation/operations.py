"""Times of operations from measured runs: FastT's computation cost model (FastT, Section 4)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partitioner.base.argument_types import require_items, require_type
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.estimation.measured import flaw, measured, relative_deviation
from partitioner.workload.graph import Floats

Run = tuple[Hashable, str, float]
RULE = "must be one of `operations`, one of `kinds`, and a time"


@dataclass(frozen=True, eq=False)
class OperationTimes:
    """The mean times of operations in measured runs.

    Parameters
    ----------
    time
        For each kind of device the mean time of every operation, shape (operations,), as
        `Graph.from_arrays` takes it.
    unmeasured
        The pairs of operation and kind without measurements; their time is 0.
    """

    time: Mapping[str, Floats]
    unmeasured: tuple[tuple[Hashable, str], ...]


def operation_times(
    measurements: Iterable[Run], operations: Sequence[Hashable], kinds: Sequence[str]
) -> OperationTimes:
    """Return the mean time of every operation on every kind of device.

    The time of an operation is 0 on a kind without measurements, so that a placer uses the kind and the next
    run measures it.

    Parameters
    ----------
    measurements
        For each measured run the operation, the kind of device, and the time.
    operations, kinds
        All operations and all kinds, in the order of the result.

    Raises
    ------
    WorkloadError
        If a measurement is of another operation or kind, or a time is negative or not finite.

    Examples
    --------
    >>> runs = [("conv", "gpu", 2.0), ("conv", "gpu", 4.0), ("relu", "gpu", 1.0), ("relu", "cpu", 5.0)]
    >>> model = operation_times(runs, ["conv", "relu"], ["gpu", "cpu"])
    >>> model.time["gpu"].tolist(), model.time["cpu"].tolist(), model.unmeasured
    ([3.0, 1.0], [0.0, 5.0], (('conv', 'cpu'),))
    """
    measurements, operations = (
        require_items("measurements", measurements),
        _distinct("operations", operations),
    )
    kinds = _distinct("kinds", kinds)
    column = {operation: i for i, operation in enumerate(operations)}
    row = {kind: i for i, kind in enumerate(kinds)}
    places, times = [], []
    for i, run in enumerate(measurements):
        try:
            operation, kind, time = run
            places.append((row[kind], column[operation]))
        except (KeyError, TypeError, ValueError):
            raise WorkloadError([Flaw(f"measurement {i}", "", shown(run), RULE)]) from None
        times.append(time)
    return _means(measured("time", times, 1), places, operations, kinds)


def _distinct(name: str, values: object) -> list[Any]:
    """Return the values as a list; raise if one is not hashable."""
    found = require_items(name, values)
    try:
        set(found)
    except TypeError:
        raise flaw(name, shown(found), "must be numbers or texts") from None
    return found


def is_stable(before: OperationTimes, after: OperationTimes, tolerance: float = 0.05) -> bool:
    """Whether no mean time has changed by more than the fraction `tolerance`, so that measuring may end.

    An operation that is measured for the first time on a kind has changed.

    Raises
    ------
    WorkloadError
        If `before` and `after` differ in kinds or operations, or `tolerance` is not a number of at least 0.
    """
    require_type("before", before, OperationTimes)
    require_type("after", after, OperationTimes)
    limit = float(measured("tolerance", tolerance, 0))
    if before.time.keys() != after.time.keys():
        raise flaw("kinds", shown(list(after.time)), f"must be {', '.join(before.time)} as before")
    changes = [relative_deviation(after.time[kind], before.time[kind]) for kind in before.time]
    return all(bool((change <= limit).all()) for change in changes)


def _means(
    times: Floats, places: list[tuple[int, int]], operations: Sequence[Hashable], kinds: Sequence[str]
) -> OperationTimes:
    """Return the mean of the measured times by kind and operation; `places` has the positions of both."""
    at = np.array(places, dtype=np.int64).reshape(-1, 2).T
    shape = len(kinds), len(operations)
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, tuple(at), times)
    np.add.at(count, tuple(at), 1.0)
    mean = total / np.maximum(count, 1.0)
    missing = tuple((operations[i], kinds[k]) for k, i in np.argwhere(count == 0).tolist())
    return OperationTimes({kind: mean[k] for k, kind in enumerate(kinds)}, missing)
