"""Operators one by one on their devices, and the tensors between them: what runs when."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from partitioner.evaluation.costs import tensors
from partitioner.evaluation.placed import Placed
from partitioner.transfers import Transfers

ENDS, WAKES = 0, 1
Reader = tuple[int, int]  # a tensor and a node that reads it


class Operators:
    """A placement as it runs; nodes by their positions in the graph.

    Parameters
    ----------
    placed
        The placement.
    transfers
        How tensors travel.
    rank
        For every node its place in a topological order.
    strict
        Does every device run its nodes in that order? Else in the order in which they become ready.

    Attributes
    ----------
    begun
        The nodes in the order in which they were started.
    start, finish
        When each node runs.
    cause
        For every node the one that it started after: on its device, or the producer of its last input.
    sent, received
        For every device the time that its transfers take.
    """

    def __init__(self, placed: Placed, transfers: Transfers, rank: Sequence[int], strict: bool) -> None:
        n, count = len(placed.graph), len(placed.names)
        self.device: list[int] = placed.device.tolist()
        self.rank, self.strict, self.contention = rank, strict, transfers.contention
        self.length, self.slope, self.intercept = _times(placed), *_lines(placed, transfers)
        self.readers, self.cost = _tensors(placed)
        self.missing = [0] * n
        for _, v in (pair for readers in self.readers for pair in readers):
            self.missing[v] += 1
        self.start, self.finish, self.ready = [0.0] * n, [0.0] * n, [0.0] * n
        self.cause: list[int | None] = [None] * n
        self.begun: list[int] = []
        self.sent, self.received, self.channel = [0.0] * count, [0.0] * count, [0.0] * count
        self.arrival: dict[tuple[int, int], float] = {}
        self.last: list[int | None] = [None] * count
        self.busy = [False] * count
        self.queue: list[list[tuple[float, int, int]]] = [[] for _ in range(count)]
        self.events: list[tuple[float, int, int, int]] = []

    def run(self) -> None:
        """Everything happens, event by event; at the same moment what is first in the order."""
        for v, missing in enumerate(self.missing):
            if self.strict or not missing:
                self._queue(v)
        for d in range(len(self.queue)):
            self._wake(d, 0.0)
        while self.events:
            now, what, _, place = heapq.heappop(self.events)
            if what == ENDS:
                self._end(place)
            else:
                self._next(place, now)

    def _queue(self, v: int) -> None:
        """Queue a node for its device: by its place in the order, or by when it is ready."""
        heapq.heappush(self.queue[self.device[v]], (0.0 if self.strict else self.ready[v], self.rank[v], v))

    def _wake(self, d: int, now: float) -> None:
        """Look for work: at once if the order is given, else when all that ends at this moment has ended."""
        if self.strict:
            self._next(d, now)
        else:
            heapq.heappush(self.events, (now, WAKES, d, d))

    def _next(self, d: int, now: float) -> None:
        """Start the first node in the device's queue if it can start, or look again when it is ready."""
        if self.busy[d] or not self.queue[d]:
            return
        v = self.queue[d][0][2]
        if self.missing[v]:
            return
        if not self.strict and self.ready[v] > now:
            self._wake(d, self.ready[v])
            return
        heapq.heappop(self.queue[d])
        self._start(v, d)

    def _start(self, v: int, d: int) -> None:
        before = self.last[d]
        free = 0.0 if before is None else self.finish[before]
        if before is not None and free >= self.ready[v]:
            self.cause[v] = before
        self.start[v] = max(free, self.ready[v])
        self.finish[v] = self.start[v] + self.length[v]
        self.busy[d], self.last[d] = True, v
        self.begun.append(v)
        heapq.heappush(self.events, (self.finish[v], ENDS, self.rank[v], v))

    def _end(self, u: int) -> None:
        """Send the tensors that the node made, in the order of its edges, and wake those that read them."""
        self.busy[self.device[u]] = False
        for tensor, v in self.readers[u]:
            self._send(u, tensor, self.device[v])
            arrived = self.arrival.get((tensor, self.device[v]), self.finish[u])
            if arrived >= self.ready[v]:
                self.ready[v], self.cause[v] = arrived, u
            self.missing[v] -= 1
            if not self.missing[v] and not self.strict:
                self._queue(v)
        for d in dict.fromkeys([self.device[u], *(self.device[v] for _, v in self.readers[u])]):
            self._wake(d, self.finish[u])

    def _send(self, u: int, tensor: int, d: int) -> None:
        """Send a tensor to a device, once; it takes the sender's channel, and from then on the receiver's."""
        source = self.device[u]
        if source == d or (tensor, d) in self.arrival:
            return
        length = self.slope[source][d] * self.cost[tensor] + self.intercept[source][d]
        leaves = received = self.finish[u]
        if self.contention and length > 0:
            leaves = max(leaves, self.channel[source])
            received = max(leaves, self.channel[d])
            self.channel[source], self.channel[d] = leaves + length, received + length
        self.arrival[tensor, d] = received + length
        self.sent[source] += length
        self.received[d] += length


def _times(placed: Placed) -> list[float]:
    """What each node takes where it is; 0 where its kind has no times."""
    graph = placed.graph
    rows = [(row, placed.pace[d]) for row, d in zip(placed.row.tolist(), placed.device.tolist(), strict=True)]
    return [
        float(graph.time[row, v]) * float(pace) if row >= 0 else 0.0 for v, (row, pace) in enumerate(rows)
    ]


def _lines(placed: Placed, transfers: Transfers) -> tuple[list[list[float]], list[list[float]]]:
    """Slope and intercept between all devices that are named; nothing for those that do not exist."""
    slope, intercept = transfers.times(placed.devices)
    beyond = (0, len(placed.names) - len(slope))
    return np.pad(slope, beyond).tolist(), np.pad(intercept, beyond).tolist()


def _tensors(placed: Placed) -> tuple[list[list[Reader]], list[float]]:
    """For every node its tensors with their readers, in the order of the edges, and the tensors' costs."""
    graph = placed.graph
    tensor, cost = tensors(graph)
    readers: list[dict[Reader, None]] = [{} for _ in graph.ids]
    for (u, v), carried in zip(graph.edges.tolist(), tensor.tolist(), strict=True):
        readers[u][carried, v] = None
    return [list(each) for each in readers], cost.tolist()


def topological_rank(placed: Placed) -> list[int]:
    """For every node its place in a topological order, that of the file as far as edges allow."""
    readers, _ = _tensors(placed)
    missing = [0] * len(readers)
    for _, v in (pair for pairs in readers for pair in pairs):
        missing[v] += 1
    rank = [0] * len(readers)
    for place, v in enumerate(_released(readers, missing)):
        rank[v] = place
    return rank


def _released(readers: list[list[Reader]], missing: list[int]) -> Iterator[int]:
    ready = [v for v, count in enumerate(missing) if not count]
    while ready:
        v = heapq.heappop(ready)
        yield v
        for _, w in readers[v]:
            missing[w] -= 1
            if not missing[w]:
                heapq.heappush(ready, w)
