"""DPOS in plain Python, from the words of FastT's Section 5.1: lists, dictionaries, intervals."""

from __future__ import annotations

import math
from itertools import pairwise

from partitioner.problem.tasks import Tasks


class PlainDpos:
    """Places the tasks; `device` stays None for some if the memory does not suffice."""

    def __init__(self, tasks: Tasks, reserve: bool) -> None:
        self.tasks, self.reserve = tasks, reserve
        self.n, self.devices = tasks.n, range(len(tasks.limit))
        self.time = tasks.time.tolist()
        self.inputs = [
            [(int(tasks.before.items[e]), int(tasks.before_tensor[e])) for e in range(*ends)]
            for ends in pairwise(tasks.before.start.tolist())
        ]
        self.readers: list[list[tuple[int, int]]] = [[] for _ in range(self.n)]
        for v in range(self.n):
            for u, tensor in self.inputs[v]:
                self.readers[u].append((v, tensor))
        self.members: dict[int, list[int]] = {}
        for v, g in enumerate(tasks.group.tolist()):
            self.members.setdefault(g, []).append(v)
        self.device: list[int | None] = [None] * self.n
        self.start, self.finish = [0.0] * self.n, [0.0] * self.n
        self.booked: list[list[tuple[float, float]]] = [[] for _ in self.devices]
        self.channel = [0.0 for _ in self.devices]
        self.arrived: dict[tuple[int, int], float] = {}

    def run(self) -> bool:
        """Place everything; False if something fits nowhere."""
        rank = self.ranks()
        path = self.critical_path(rank)
        current = None
        for v in sorted(range(self.n), key=lambda v: (-rank[v], v)):
            mates = [d for w in self.group(v) if (d := self.device[w]) is not None]
            chosen: int | None
            if mates:
                chosen = mates[0]
                if not self.has_room([*self.on(mates[0]), v], mates[0]):
                    return False
            elif v in path:
                if current is None or not self.may_go(v, current):
                    current = self.critical_device(path[path.index(v) :])
                chosen = current
            else:
                ends = {d: self.begin(v, d) + self.time[d][v] for d in self.devices if self.may_go(v, d)}
                chosen = min(ends, key=lambda d: (ends[d], d)) if ends else None
            if chosen is None:
                return False
            self.put(v, chosen)
        return True

    def ranks(self) -> list[float]:
        """Equation of rank_u: the largest time, then the largest transfer and rank behind it."""
        rank = [0.0] * self.n
        for v in reversed(range(self.n)):
            own = max((row[v] for row in self.time if row[v] < math.inf), default=0.0)
            rank[v] = max((own + self.dearest(t) + rank[w] for w, t in self.readers[v]), default=own)
        return rank

    def dearest(self, tensor: int) -> float:
        """The longest time of a tensor between two different devices."""
        return max(
            (self.travel(tensor, a, b) for a in self.devices for b in self.devices if a != b), default=0.0
        )

    def travel(self, tensor: int, a: int, b: int) -> float:
        """The time of a tensor from one device to another."""
        return float(self.tasks.slope[a, b] * self.tasks.cost[tensor] + self.tasks.intercept[a, b])

    def critical_path(self, rank: list[float]) -> list[int]:
        """Entry of largest rank, then its successor of largest rank, and so on."""
        path = [max((v for v in range(self.n) if not self.inputs[v]), key=lambda v: (rank[v], -v))]
        while self.readers[path[-1]]:
            path.append(max((w for w, _ in self.readers[path[-1]]), key=lambda w: (rank[w], -w)))
        return path

    def group(self, v: int) -> list[int]:
        """All tasks that share the device of this one."""
        return self.members[int(self.tasks.group[v])]

    def on(self, d: int) -> list[int]:
        """The tasks on a device."""
        return [v for v in range(self.n) if self.device[v] == d]

    def has_room(self, there: list[int], d: int) -> bool:
        """Do these tasks fit? With reservations whole groups do."""
        if self.reserve:
            there = sorted({w for v in there for w in self.group(v)})
        return sum(float(self.tasks.size[v]) for v in there) <= float(self.tasks.limit[d])

    def may_go(self, v: int, d: int) -> bool:
        """For the first task of a group: all of it runs there and there is room for all of it."""
        runs = all(self.time[d][w] < math.inf for w in self.group(v))
        return runs and self.has_room([*self.on(d), *self.group(v)], d)

    def critical_device(self, rest: list[int]) -> int | None:
        """The smallest average time, then the most tasks, then the lowest number."""
        best = None
        for d in self.devices:
            taken: list[int] = []
            for v in rest:
                homes = {self.device[w] for w in self.group(v)} - {None, d}
                if homes:
                    continue
                known = any(self.device[w] == d or w in taken for w in self.group(v))
                runs = all(self.time[d][w] < math.inf for w in self.group(v))
                extra = [v] if known else self.group(v)
                if not runs or not self.has_room([*self.on(d), *taken, *extra], d):
                    break
                taken.append(v)
            if taken:
                key = (sum(self.time[d][v] for v in taken) / len(taken), -len(taken), d)
                best = key if best is None or key < best else best
        return None if best is None else best[2]

    def arrival(self, u: int, tensor: int, d: int) -> float:
        """When a tensor is on a device."""
        source = self.device[u]
        assert source is not None
        length = self.travel(tensor, source, d) if source != d else 0.0
        if not self.tasks.contention or length == 0:
            return self.finish[u] + length
        sent = max(self.finish[u], self.channel[source])
        return self.arrived.get((tensor, d), max(sent, self.channel[d]) + length)

    def begin(self, v: int, d: int) -> float:
        """Start in the first gap between the device's tasks that is long enough; a gap has a length."""
        ready = max((self.arrival(u, t, d) for u, t in self.inputs[v]), default=0.0)
        edges = [(0.0, 0.0), *sorted(self.booked[d]), (math.inf, math.inf)]
        for (_, free), (next_start, _) in pairwise(edges):
            begin = max(ready, free)
            if free < next_start and begin + self.time[d][v] <= next_start:
                return begin
        raise AssertionError("there is always room after the last task")

    def put(self, v: int, d: int) -> None:
        """Send the inputs one after another, then run."""
        for u, tensor in self.inputs[v] if self.tasks.contention else []:
            source = self.device[u]
            assert source is not None
            length = self.travel(tensor, source, d) if source != d else 0.0
            if length > 0 and (tensor, d) not in self.arrived:
                self.arrived[tensor, d] = self.arrival(u, tensor, d)
                self.channel[source] = max(self.finish[u], self.channel[source]) + length
                self.channel[d] = self.arrived[tensor, d]
        self.start[v] = self.begin(v, d)
        self.finish[v] = self.start[v] + self.time[d][v]
        self.device[v] = d
        self.booked[d].append((self.start[v], self.finish[v]))
