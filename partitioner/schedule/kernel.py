"""The compiled simulation: events in order of time."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.workload.graph import Floats, Ints

IN, COMPUTE, OUT, SYNC = range(4)


class PassRows(NamedTuple):
    """The passes of a table, device by device.

    Parameters
    ----------
    start, row, work, sample
        Starts of the devices' rows in the table; for every pass of the table its device, its kind (the index
        of the pass among those of one sample), and its sample.
    where
        Shape (kinds of passes, samples): position of each pass in the table.
    """

    start: Ints
    row: Ints
    work: Ints
    sample: Ints
    where: Ints


class PassWaits(NamedTuple):
    """The kinds of passes that each kind waits for, and those that wait for it, as rows."""

    before_start: Ints
    before: Ints
    after_start: Ints
    after: Ints


class PassTimes(NamedTuple):
    """How long passes take, and what of a device they occupy.

    Parameters
    ----------
    length
        Shape (kinds of passes, 4): the time of each part (transfers in, compute, transfers out, sync).
    closing
        Shape (devices,): the time of sync in addition, after the last pass of a device.
    unit
        Shape (4,): the unit of the device that each part occupies; parts of one unit run one by one.
    """

    length: Floats
    closing: Floats
    unit: Ints


@njit(cache=True, nogil=True)
def run(
    rows: PassRows, waits: PassWaits, times: PassTimes, at_once: int, ahead: Ints
) -> tuple[Floats, Floats]:
    """Run every device's passes in the order of its row, each part as early as it can be.

    Parameters
    ----------
    rows, waits, times
        The passes, what they wait for, and how long they take.
    at_once
        The largest number of samples in the pipeline at the same time.
    ahead
        Shape (devices,): for how many passes after the last one begun a device may fetch inputs.

    Returns
    -------
    begin, end
        Shape (passes, 4): when each part begins and ends; infinity if it never does, for passes that
        wait for one another.

    Notes
    -----
    If several parts can begin on a device, the order of precedence is: transfers out, exchange of weights,
    processing, transfers in.
    """
    row_start, row, work, sample, where = rows.start, rows.row, rows.work, rows.sample, rows.where
    before_start, before, after_start, after = (
        waits.before_start, waits.before, waits.after_start, waits.after,
    )  # fmt: skip
    length, closing, unit = times.length, times.closing, times.unit
    total, devices = len(work), len(row_start) - 1
    begin, end = np.full((total, 4), np.inf), np.full((total, 4), np.inf)
    position = np.empty((devices, 4), np.int64)
    for d in range(devices):
        position[d] = row_start[d]
    free = np.zeros((devices, 4))
    samples = where.shape[1]
    left, finish = np.full(samples, where.shape[0]), np.zeros(samples)
    heap = [(0.0, d) for d in range(devices)]  # when to look at a device again
    while heap:
        now, d = heapq.heappop(heap)
        moved = True
        while moved:
            moved = False
            for part in (OUT, SYNC, COMPUTE, IN):
                k = position[d, part]
                if k >= row_start[d + 1]:
                    continue
                kind, m = work[k], sample[k]
                time = length[kind, part]
                if part == SYNC and k + 1 == row_start[d + 1]:
                    time += closing[d]
                if (time > 0 or part == COMPUTE) and free[d, unit[part]] > now:
                    continue
                if part in (OUT, SYNC):
                    ready = end[k, COMPUTE] <= now
                elif part == COMPUTE:
                    ready = end[k, IN] <= now
                else:  # inputs are fetched ahead once those that make them have sent them
                    ready = k < position[d, COMPUTE] + ahead[d] and (
                        m < at_once or (left[m - at_once] == 0 and finish[m - at_once] <= now)
                    )
                    for e in range(before_start[kind], before_start[kind + 1]):
                        other = where[before[e], m]
                        ready &= other < k if row[other] == d else end[other, OUT] <= now
                if not ready:
                    continue
                begin[k, part], end[k, part] = now, now + time
                position[d, part] += 1
                moved = True
                if time > 0:
                    free[d, unit[part]] = now + time
                    heapq.heappush(heap, (now + time, d))
                if part == OUT:  # wake the devices that wait for it, all of them when a sample has left
                    for e in range(after_start[kind], after_start[kind + 1]):
                        other = row[where[after[e], m]]
                        if other != d:
                            heapq.heappush(heap, (now + time, other))
                    left[m] -= 1
                    finish[m] = max(finish[m], now + time)
                    if left[m] == 0 and m + at_once < samples:
                        for other in range(devices):
                            heapq.heappush(heap, (finish[m], other))
                break
    return begin, end
