"""A simulation of devices that run operators one by one, and of the tensors that they exchange."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from partitioner.evaluation.costs import tensors
from partitioner.evaluation.placed import Placed
from partitioner.workload.transfers import Transfers

ENDS, WAKES = 0, 1
Reader = tuple[int, int]  # a tensor and a node that reads it


class Operators:
    """A simulation of one step of a placement; nodes are given by their positions in the graph.

    Parameters
    ----------
    placed
        The placement.
    transfers
        The model of transfer times.
    rank
        For every node its position in a topological order.
    strict
        Whether every device runs its nodes in that order; otherwise in the order in which they become ready.

    Attributes
    ----------
    begun
        The nodes in the order in which they were started.
    start, finish
        When each node starts and ends.
    cause
        For every node the node whose end determined its start: the one before on its device, or the producer
        of its last input; None if it started at 0.
    sent, received
        For every device the total time of its transfers.
    """

    def __init__(self, placed: Placed, transfers: Transfers, rank: Sequence[int], strict: bool) -> None:
        n, count = len(placed.graph), len(placed.names)
        self.device: list[int] = placed.device.tolist()
        self.rank, self.strict, self.contention = rank, strict, transfers.contention
        self.length, self.slope, self.intercept = _times(placed), *_lines(placed, transfers)
        self.readers, self.missing, self.cost = _tensors(placed)
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
        """Process all events in order of time, and at the same time in order of `rank`."""
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
        """Queue a node for its device, by `rank` if the order is strict, else by when it is ready."""
        heapq.heappush(self.queue[self.device[v]], (0.0 if self.strict else self.ready[v], self.rank[v], v))

    def _wake(self, d: int, now: float) -> None:
        """Start the next node now if the order is strict, else after all nodes that end at this time."""
        if self.strict:
            self._next(d, now)
        else:
            heapq.heappush(self.events, (now, WAKES, d, d))

    def _next(self, d: int, now: float) -> None:
        """Start the first node in the device's queue if it can start; else try again when it is ready."""
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
        """Send the tensors that node `u` produced, in the order of its edges, and wake their readers."""
        home, ready, missing = self.device[u], self.ready, self.missing
        self.busy[home] = False
        woken = {home: None}
        for tensor, v in self.readers[u]:
            arrived, d = self.finish[u], self.device[v]
            if d != home:
                woken[d] = None
                self._send(u, tensor, d)
                arrived = self.arrival[tensor, d]
            if arrived >= ready[v]:
                ready[v], self.cause[v] = arrived, u
            missing[v] -= 1
            if not missing[v] and not self.strict:
                self._queue(v)
        for d in woken:
            self._wake(d, self.finish[u])

    def _send(self, u: int, tensor: int, d: int) -> None:
        """Send a tensor to another device once, when the sender's and the receiver's channels are free."""
        source = self.device[u]
        if (tensor, d) in self.arrival:
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
    """Return the time of each node on its device; 0 if the graph has no times for the kind."""
    graph = placed.graph
    time = graph.time[placed.row, np.arange(len(graph))] * placed.time_factor[placed.device]
    return [float(t) for t in np.where(placed.row >= 0, time, 0.0)]


def _lines(placed: Placed, transfers: Transfers) -> tuple[list[list[float]], list[list[float]]]:
    """Return slope and intercept between all devices that are named; 0 for those that do not exist."""
    slope, intercept = transfers.times(placed.devices)
    beyond = (0, len(placed.names) - len(slope))
    return np.pad(slope, beyond).tolist(), np.pad(intercept, beyond).tolist()


def _tensors(placed: Placed) -> tuple[list[list[Reader]], list[int], list[float]]:
    """Return the readers of each node's tensors, how many tensors each node reads, and the tensors' costs.

    The first are pairs of tensor and reader for each node, in the order of the edges.
    """
    graph = placed.graph
    tensor, cost = tensors(graph)
    _, first = np.unique(tensor * len(graph) + graph.edges[:, 1], return_index=True)
    first = np.sort(first)
    first = first[np.argsort(graph.edges[first, 0], kind="stable")]
    source, reader = graph.edges[first].T
    pairs = list(zip(tensor[first].tolist(), reader.tolist(), strict=True))
    start = np.searchsorted(source, np.arange(len(graph) + 1)).tolist()
    readers = [pairs[begin:end] for begin, end in pairwise(start)]
    return readers, np.bincount(reader, minlength=len(graph)).tolist(), cost.tolist()


def topological_rank(placed: Placed) -> list[int]:
    """Return for every node its position in the topological order that takes the lowest ready node next."""
    readers, missing, _ = _tensors(placed)
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
