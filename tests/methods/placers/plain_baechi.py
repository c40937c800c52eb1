"""m-ETF, m-SCT's placement and ETF once more, as plainly as they are described: everything looked at anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from partitioner.problem.tasks import Tasks

INF = float("inf")


class World:
    """Devices, channels and memory while tasks are placed."""

    def __init__(self, tasks: Tasks, reserve: bool) -> None:
        self.tasks, self.reserve = tasks, reserve
        self.n, self.devices = tasks.n, range(len(tasks.limit))
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in range(self.n)]
        for v, u, tensor in zip(
            tasks.before.owners().tolist(),
            tasks.before.items.tolist(),
            tasks.before_tensor.tolist(),
            strict=True,
        ):
            self.inputs[v].append((u, tensor))
        self.where: dict[int, int] = {}
        self.begin: dict[int, float] = {}
        self.end: dict[int, float] = {}
        self.arrived: dict[tuple[int, int], float] = {}
        self.channel = [0.0 for _ in self.devices]
        self.free = [0.0 for _ in self.devices]

    def members(self, v: int) -> list[int]:
        return [w for w in range(self.n) if self.tasks.group[w] == self.tasks.group[v]]

    def used(self, d: int) -> float:
        """Memory taken on a device: of tasks, or of whole groups once their first task is there."""
        held = {w for w, e in self.where.items() if e == d}
        if self.reserve:
            held = {w for v in held for w in self.members(v)}
        return sum(float(self.tasks.size[w]) for w in held)

    def feasible(self, v: int, d: int) -> bool:
        members = self.members(v)
        homes = {self.where[w] for w in members if w in self.where}
        left = float(self.tasks.limit[d]) - self.used(d)
        if not homes:
            allowed = all(np.isfinite(self.tasks.time[d, w]) for w in members)
            return allowed and sum(float(self.tasks.size[w]) for w in members) <= left
        return homes == {d} and (self.reserve or float(self.tasks.size[v]) <= left)

    def transfer(self, u: int, tensor: int, d: int) -> tuple[float, float, float]:
        """When it leaves, how long it takes, when it arrives."""
        s, made = self.where[u], self.end[u]
        length = float(self.tasks.slope[s, d] * self.tasks.cost[tensor] + self.tasks.intercept[s, d])
        if not self.tasks.contention or length == 0:
            return made, length, made + length
        leaves = max(made, self.channel[s])
        return leaves, length, max(leaves, self.channel[d]) + length

    def inputs_on(self, v: int, d: int) -> float:
        """When all inputs of a task are on a device, each judged by itself."""
        times = [0.0]
        for u, tensor in self.inputs[v]:
            if self.where[u] == d:
                times.append(self.end[u])
            elif (tensor, d) in self.arrived:
                times.append(self.arrived[tensor, d])
            else:
                times.append(self.transfer(u, tensor, d)[2])
        return max(times)

    def schedule_time(self, v: int, d: int) -> float:
        return max(self.inputs_on(v, d), self.free[d])

    def run(self, v: int, d: int) -> None:
        for u, tensor in self.inputs[v]:
            if self.where[u] != d and (tensor, d) not in self.arrived:
                leaves, length, arrives = self.transfer(u, tensor, d)
                self.arrived[tensor, d] = arrives
                if self.tasks.contention and length > 0:
                    self.channel[self.where[u]], self.channel[d] = leaves + length, arrives
        self.begin[v] = self.schedule_time(v, d)
        self.where[v] = d
        self.end[v] = self.free[d] = self.begin[v] + float(self.tasks.time[d, v])


def queue_order(tasks: Tasks) -> list[int]:
    """Breadth first: repeatedly the front of the queue, its consumers behind it when complete."""
    todo = [v for v in range(tasks.n) if not len(tasks.before.row(v))]
    todo.sort(key=lambda v: int(tasks.node[v]))
    seen: list[int] = []
    while todo:
        u = todo.pop(0)
        seen.append(u)
        for v in dict.fromkeys(tasks.after.row(u).tolist()):
            if set(tasks.before.row(v).tolist()) <= set(seen):
                todo.append(v)
    return seen


class Simulation(World):
    """The event-driven scheduler, with favourite children or without."""

    def __init__(self, tasks: Tasks, favourite: Sequence[int | None], reserve: bool) -> None:
        super().__init__(tasks, reserve)
        self.favourite = favourite
        self.rank = {v: i for i, v in enumerate(queue_order(tasks))}
        self.running: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.ended: set[int] = set()
        self.run_all()

    def run_all(self) -> None:
        now: float | None = 0.0
        while now is not None:
            for d in self.devices:
                if d in self.running and self.end[self.running[d]] <= now:
                    self.last[d] = self.running.pop(d)
                    self.ended.add(self.last[d])
            while offers := [o for d in self.devices for o in self.offer(d, now)]:
                _, _, d, v = min(offers)
                self.run(v, d)
                self.running[d] = v
            times = [t for d in self.devices for t in self.next_times(d, now)]
            now = min(times, default=None)

    def ready(self) -> list[int]:
        return [
            v
            for v in range(self.n)
            if v not in self.where and all(u in self.ended for u, _ in self.inputs[v])
        ]

    def first(self, d: int) -> tuple[float, int, int] | None:
        """The ready task that the device could start first: time, rank, task."""
        return min(
            ((self.schedule_time(v, d), self.rank[v], v) for v in self.ready() if self.feasible(v, d)),
            default=None,
        )

    def child(self, d: int) -> int | None:
        """The favourite child that the device holds out for."""
        f = self.favourite[self.last[d]] if d in self.last else None
        if f is None or f not in self.ready() or not self.feasible(f, d):
            return None
        least = min(self.schedule_time(f, e) for e in self.devices if self.feasible(f, e))
        return f if self.schedule_time(f, d) == least else None

    def urgent(self, d: int) -> tuple[float, int, int] | None:
        """The ready task that fits here and could soonest start wherever it fits: time, rank, task."""
        return min(
            (
                (
                    max(self.schedule_time(v, e) for e in self.devices if self.feasible(v, e)),
                    self.rank[v],
                    v,
                )
                for v in self.ready()
                if self.feasible(v, d)
            ),
            default=None,
        )

    def offer(self, d: int, now: float) -> Iterator[tuple[float, int, int, int]]:
        if d in self.running:
            return
        if (f := self.child(d)) is None:
            best = self.first(d)
            v = best[2] if best else None
        else:
            urgent = self.urgent(d)
            v = urgent[2] if urgent and urgent[0] <= now else f
        if v is not None and self.schedule_time(v, d) <= now:
            yield self.schedule_time(v, d), self.rank[v], d, v

    def next_times(self, d: int, now: float) -> Iterator[float]:
        if d in self.running:
            yield self.end[self.running[d]]
        elif (f := self.child(d)) is not None:
            yield self.schedule_time(f, d)
            if urgent := self.urgent(d):
                yield urgent[0]
        elif best := self.first(d):
            yield best[0]


class EarliestFirst(World):
    """ETF: among all pairs the earliest start, then the longest path to an exit, the number, the device."""

    def __init__(self, tasks: Tasks, level: Sequence[float], reserve: bool) -> None:
        super().__init__(tasks, reserve)
        while pairs := [
            (self.schedule_time(v, d), -level[v], v, d)
            for v in range(self.n)
            if v not in self.where and all(u in self.where for u, _ in self.inputs[v])
            for d in self.devices
            if self.feasible(v, d)
        ]:
            _, _, v, d = min(pairs)
            self.run(v, d)
