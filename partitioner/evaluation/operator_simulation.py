"""A simulation of devices that run operators one by one, and of the tensors that they exchange."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from partitioner.evaluation.operator_arrays import OperatorArrays
from partitioner.workload.graph import Floats, Ints

NOTHING = -1


class Operators:
    """A simulation of one step in which every device runs its operators in the order of their numbers.

    Parameters
    ----------
    arrays
        The operators, numbered in the order in which devices run them, or that decides among equals.
    devices
        How many devices there are.
    contention
        See :class:`partitioner.Transfers`.

    Attributes
    ----------
    begun, ended
        The operators in the order in which they were started, and in which their ends were processed.
    start, finish
        When each operator starts and ends.
    cause
        For every operator the one whose end determined its start: the one before on its device, or the
        producer of its last input; `NOTHING` if it started at 0.
    """

    def __init__(self, arrays: OperatorArrays, devices: int, contention: bool) -> None:
        self.arrays, self.n, self.contention = arrays, len(arrays.length), contention
        self.missing = arrays.missing.copy()
        self.start, self.finish, self.cause = [0.0] * self.n, [0.0] * self.n, [NOTHING] * self.n
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.arrival = [0.0] * len(arrays.target)
        self.last, self.busy, self.channel = [NOTHING] * devices, [False] * devices, [0.0] * devices
        self.events: list[tuple[float, int]] = []
        self.queue: list[list[int]] = [[] for _ in range(devices)]  # the next one is the last
        for v in range(self.n - 1, -1, -1):
            self.queue[arrays.device[v]].append(v)

    def run(self) -> None:
        """Process all events in order of time, and at the same time in order of number."""
        for d in range(len(self.busy)):
            self.wake(d, 0.0)
        while self.events:
            now, place = heappop(self.events)
            self.handle(place, now)

    def wake(self, d: int, now: float) -> None:
        """Start the next operator of a free device if its inputs are on their way."""
        queue = self.queue[d]
        if queue and not self.missing[queue[-1]]:
            self.begin(queue.pop(), d)

    def release(self, v: int) -> None:
        """Take note that all inputs of an operator are on their way; it has its place in a queue already."""

    def begin(self, v: int, d: int) -> None:
        """Start an operator as soon as its device is free and all its inputs are there."""
        before = self.last[d]
        if before != NOTHING and self.finish[before] >= self.start[v]:
            self.start[v], self.cause[v] = self.finish[before], before
        self.finish[v] = end = self.start[v] + self.arrays.length[v]
        self.busy[d], self.last[d] = True, v
        self.begun.append(v)
        heappush(self.events, (end, v))

    def handle(self, u: int, now: float) -> None:
        """Process the end of operator `u`: send its tensors, release their readers, and wake devices."""
        arrays, start, cause, missing = self.arrays, self.start, self.cause, self.missing
        reader, along, home, contention = arrays.reader, arrays.along, arrays.device[u], self.contention
        self.busy[home] = False
        self.ended.append(u)
        if contention:
            self._send(u, now)
        for edge in range(arrays.first_edge[u], arrays.first_edge[u + 1]):
            v = reader[edge]
            arrived = self.arrival[arrays.transfer[edge]] if contention else now + along[edge]
            if arrived >= start[v]:
                start[v], cause[v] = arrived, u
            missing[v] -= 1
            if not missing[v]:
                self.release(v)
        for d in (home, *arrays.target[arrays.first_transfer[u] : arrays.first_transfer[u + 1]]):
            if not self.busy[d]:
                self.wake(d, now)

    def _send(self, u: int, now: float) -> None:
        """Send each tensor of `u` once to a device, when the channels of both ends are free."""
        arrays, channel, source = self.arrays, self.channel, self.arrays.device[u]
        for number in range(arrays.first_transfer[u], arrays.first_transfer[u + 1]):
            duration, received = arrays.duration[number], now
            if duration > 0:
                d, leaves = arrays.target[number], max(now, channel[source])
                received = max(leaves, channel[d])
                channel[source], channel[d] = leaves + duration, received + duration
            self.arrival[number] = received + duration

    def exchanged(self) -> tuple[Floats, Floats]:
        """Return the total times of the transfers out of and into each device, added in order of time."""
        arrays, count = self.arrays, len(self.busy)
        turn = np.argsort(np.array(self.ended, dtype=np.int64))
        by_turn = np.argsort(turn[arrays.maker], kind="stable")
        duration = np.array(arrays.duration)[by_turn]
        source, target = (
            np.array(arrays.device)[arrays.maker[by_turn]],
            np.array(arrays.target, dtype=np.int64)[by_turn],
        )
        return _sums(source, duration, count), _sums(target, duration, count)


class EagerOperators(Operators):
    """The simulation in which every device runs first what is ready first, by number among equals."""

    def __init__(self, arrays: OperatorArrays, devices: int, contention: bool) -> None:
        super().__init__(arrays, devices, contention)
        self.ready: list[list[tuple[float, int]]] = [[] for _ in range(devices)]
        for v in [v for v, missing in enumerate(self.missing) if not missing]:
            self.release(v)

    def release(self, v: int) -> None:
        """Queue an operator for its device by when it is ready."""
        heappush(self.ready[self.arrays.device[v]], (self.start[v], v))

    def wake(self, d: int, now: float) -> None:
        """Start the next operator after all operators that end at this time."""
        heappush(self.events, (now, self.n + d))

    def handle(self, place: int, now: float) -> None:
        """Process the end of an operator, or look for what a device can start."""
        if place < self.n:
            super().handle(place, now)
        elif self.ready[place - self.n] and not self.busy[place - self.n]:
            self._next(place - self.n, now)

    def _next(self, d: int, now: float) -> None:
        """Start the first operator in the queue if it is ready; else try again when it is."""
        ready, v = self.ready[d][0]
        if ready > now:
            self.wake(d, ready)
        else:
            heappop(self.ready[d])
            self.begin(v, d)


def _sums(device: Ints, times: Floats, count: int) -> Floats:
    return np.bincount(device, times, count).astype(np.float64)
