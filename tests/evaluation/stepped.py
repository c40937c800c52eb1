"""Operators moment by moment, in whole numbers; written from the rules, not from the evaluator."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property


@dataclass
class Stepped:
    """Nodes, numbered in the order of the file, on their devices; what is ready first runs first."""

    time: list[int]
    edges: list[tuple[int, int]]
    cost: list[int]
    home: list[int]
    slope: list[list[int]]
    intercept: list[list[int]]
    contention: bool
    start: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    arrival: dict[tuple[object, int], int] = field(default_factory=dict)
    free: dict[int, int] = field(default_factory=dict)
    there: dict[int, int] = field(default_factory=dict)

    def run(self) -> dict[int, int]:
        """When each node starts."""
        now = 0
        while len(self.ended) < len(self.time):
            while self.something_ends(now) or self.something_starts(now):
                pass
            now += 1
        return self.start

    def something_ends(self, now: int) -> bool:
        """End the first of the nodes that are due, and send what it made, edge by edge."""
        due = [v for v in self.start if v not in self.ended and self.start[v] + self.time[v] == now]
        if not due:
            return False
        u = min(due, key=self.rank.index)
        self.ended.add(u)
        for e, (source, v) in enumerate(self.edges):
            if source == u:
                self.there[e] = self.sent(e, u, self.home[v], now)
        return True

    def sent(self, e: int, u: int, d: int, now: int) -> int:
        """When the tensor of an edge is on a device."""
        costs = [self.cost[f] for f, (source, _) in enumerate(self.edges) if source == u]
        key = (("of node", u) if len(set(costs)) == 1 else ("of edge", e), d)
        source = self.home[u]
        if d == source:
            return now
        if key not in self.arrival:
            length = self.slope[source][d] * self.cost[e] + self.intercept[source][d]
            leaves = received = now
            if self.contention and length:
                leaves = max(now, self.free.get(source, 0))
                received = max(leaves, self.free.get(d, 0))
                self.free[source], self.free[d] = leaves + length, received + length
            self.arrival[key] = received + length
        return self.arrival[key]

    def something_starts(self, now: int) -> bool:
        """Start a node on the first device that is idle and has one."""
        for d in sorted(set(self.home)):
            waiting = [v for v, home in enumerate(self.home) if home == d and v not in self.ended]
            if any(v in self.start for v in waiting):
                continue
            ready = [(self.ready(v, now), self.rank.index(v), v) for v in waiting]
            if ready and min(ready)[0] <= now:
                self.start[min(ready)[2]] = now
                return True
        return False

    def ready(self, v: int, now: int) -> int:
        """When the last input is there; later than now if that is not known."""
        inputs = [e for e, (_, reader) in enumerate(self.edges) if reader == v]
        return max((self.there.get(e, now + 1) for e in inputs), default=0)

    @cached_property
    def rank(self) -> list[int]:
        """The order of the file as far as edges allow."""
        order: list[int] = []
        while len(order) < len(self.time):
            blocked = {v for u, v in self.edges if u not in order}
            order.append(min(set(range(len(self.time))) - blocked - set(order)))
        return order
