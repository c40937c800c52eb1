"""List scheduling of CPU nodes: which core runs which node, and in what order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

import networkx as nx

from partitioner.workload.graph import Floats


class Cores:
    """A list scheduler of units, in which a unit that needs a core runs on a core of its pool.

    A unit that needs no core begins as soon as the units that it waits for have ended. At each point in time
    first all ends are processed; then the free cores take the units that are ready, the one with the longest
    remaining path first, and of equal ones the one with the lowest number.

    Parameters
    ----------
    waiting
        An edge from each unit to those that wait for it.
    length
        Shape (units,): the time of each unit.
    pool
        For each unit that needs a core the number of its pool.
    cores
        For each pool its cores.
    """

    def __init__(
        self,
        waiting: nx.DiGraph[int],
        length: Floats,
        pool: Mapping[int, int],
        cores: Mapping[int, Sequence[int]],
    ) -> None:
        self.waiting, self.length, self.pool = waiting, length.tolist(), pool
        self.rest = _remaining(waiting, self.length)
        self.free = {k: list(of_pool) for k, of_pool in cores.items()}
        for of_pool in self.free.values():
            heapify(of_pool)
        self.ready: dict[int, list[tuple[float, int]]] = {k: [] for k in cores}
        self.running: list[tuple[float, int]] = []
        self.missing = dict(waiting.in_degree())
        self.core: dict[int, int] = {}

    def run(self) -> list[int]:
        """Run all units and return those that need a core, in the order in which they began.

        Afterwards `core` has the core of each of them.
        """
        for unit in [unit for unit, count in self.missing.items() if count == 0]:
            self._release(unit, 0.0)
        self._begin(0.0)
        while self.running:
            now = self.running[0][0]
            while self.running and self.running[0][0] == now:
                self._end(heappop(self.running)[1], now)
            self._begin(now)
        return list(self.core)

    def _release(self, unit: int, now: float) -> None:
        if unit in self.pool:
            heappush(self.ready[self.pool[unit]], (-self.rest[unit], unit))
        else:
            heappush(self.running, (now + self.length[unit], unit))

    def _begin(self, now: float) -> None:
        for k, queue in self.ready.items():
            while queue and self.free[k]:
                unit = heappop(queue)[1]
                self.core[unit] = heappop(self.free[k])
                heappush(self.running, (now + self.length[unit], unit))

    def _end(self, unit: int, now: float) -> None:
        if unit in self.pool:
            heappush(self.free[self.pool[unit]], self.core[unit])
        for after in self.waiting.successors(unit):
            self.missing[after] -= 1
            if self.missing[after] == 0:
                self._release(after, now)


def _remaining(waiting: nx.DiGraph[int], length: Sequence[float]) -> dict[int, float]:
    """Return for each unit the length of the longest path from it, including its own time."""
    rest: dict[int, float] = {}
    for unit in reversed(list(nx.topological_sort(waiting))):
        rest[unit] = length[unit] + max((rest[after] for after in waiting.successors(unit)), default=0.0)
    return rest
