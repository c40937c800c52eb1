"""Adjusting Placement in plain Python, straight from Algorithm 2; it shares no code with the method."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks


@dataclass
class PlainAdjusting:
    """What is placed so far: device, start and end of tasks, memory, and the channels' transfers."""

    tasks: Tasks
    reserve: bool
    device: dict[int, int] = field(default_factory=dict)
    start: dict[int, float] = field(default_factory=dict)
    end: dict[int, float] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)
    arrived: dict[tuple[int, int], float] = field(default_factory=dict)
    channel: dict[int, float] = field(default_factory=dict)

    def run(self, order: Ints) -> int | None:
        """Place all; the task that fits nowhere, or None."""
        previous = 0
        for v in order.tolist():
            ends = {d: self.starts(v, d) + self.tasks.time[d, v] for d in self.fitting(v)}
            if not ends:
                return int(v)
            first = min(ends, key=lambda d: (ends[d], d))
            if previous not in ends or ends[previous] - ends[first] > self.back_cost(v):
                previous = first
            self.put(v, previous)
        return None

    def back_cost(self, v: int) -> float:
        """The largest transfer of an output between any two devices."""
        outputs = self.tasks.after_tensor[self.tasks.after.start[v] : self.tasks.after.start[v + 1]]
        devices = range(len(self.tasks.limit))
        pairs = [(s, d) for s in devices for d in devices if s != d]
        return max((self.length(int(t), s, d) for t in outputs for s, d in pairs), default=0.0)

    def fitting(self, v: int) -> list[int]:
        """The devices that the task fits on."""
        group = int(self.tasks.group[v])
        mates = np.flatnonzero(np.equal(self.tasks.group, group))
        if group in self.home:
            need = 0.0 if self.reserve else self.tasks.size[v]
            return [self.home[group]] if need <= self.room(self.home[group]) else []
        need = self.tasks.size[mates].sum()
        kinds = np.asarray(np.isfinite(self.tasks.time[:, mates]).all(axis=1))
        return [d for d in range(len(self.tasks.limit)) if kinds[d] and need <= self.room(d)]

    def room(self, d: int) -> float:
        """Memory left."""
        held = [v for v, at in self.device.items() if at == d]
        if self.reserve:
            groups = [g for g, at in self.home.items() if at == d]
            held = np.flatnonzero(np.isin(self.tasks.group, groups)).tolist()
        return float(self.tasks.limit[d] - self.tasks.size[held].sum())

    def length(self, tensor: int, source: int, d: int) -> float:
        """How long a transfer takes."""
        tasks = self.tasks
        return float(tasks.slope[source, d] * tasks.cost[tensor] + tasks.intercept[source, d])

    def inputs(self, v: int) -> list[tuple[int, int]]:
        """Producers and tensors."""
        row = slice(int(self.tasks.before.start[v]), int(self.tasks.before.start[v + 1]))
        items, tensors = self.tasks.before.items[row], self.tasks.before_tensor[row]
        return list(zip(items.tolist(), tensors.tolist(), strict=True))

    def arrival(self, u: int, tensor: int, d: int) -> float:
        """When a tensor would be there."""
        source = self.device[u]
        length = 0.0 if source == d else self.length(tensor, source, d)
        if length == 0.0 or not self.tasks.contention:
            return self.end[u] + length
        if (tensor, d) in self.arrived:
            return self.arrived[tensor, d]
        sent = max(self.end[u], self.channel.get(source, 0.0))
        return max(sent, self.channel.get(d, 0.0)) + length

    def starts(self, v: int, d: int) -> float:
        """EST: the first gap between the tasks on the device, or after them."""
        ready = max((self.arrival(u, tensor, d) for u, tensor in self.inputs(v)), default=0.0)
        busy = sorted((self.start[u], self.end[u]) for u, at in self.device.items() if at == d)
        busy = [(b, e) for b, e in busy if e > b]
        for (_, before), (after, _) in pairwise([(0.0, 0.0), *busy]):
            begin = max(ready, before)
            if before < after and ready <= after and begin + self.tasks.time[d, v] <= after:
                return begin
        return max(ready, busy[-1][1] if busy else 0.0)

    def put(self, v: int, d: int) -> None:
        """Place a task and send its inputs one after another."""
        for u, tensor in self.inputs(v) if self.tasks.contention else []:
            source = self.device[u]
            length = 0.0 if source == d else self.length(tensor, source, d)
            if length > 0.0 and (tensor, d) not in self.arrived:
                arrival = self.arrival(u, tensor, d)
                self.channel[source] = max(self.end[u], self.channel.get(source, 0.0)) + length
                self.channel[d] = self.arrived[tensor, d] = arrival
        begin = self.starts(v, d)
        self.home.setdefault(int(self.tasks.group[v]), d)
        self.start[v], self.end[v] = begin, begin + self.tasks.time[d, v]
        self.device[v] = d
