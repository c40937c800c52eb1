"""List scheduling: which core runs which CPU node, and in what order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

import networkx as nx

from partitioner.workload.graph import Floats


class Cores:
    """Runs units as time goes by, those of a pool of cores on the pool's cores only.

    At every moment first all that ends is noted, and what needs no core begins at once; then the free
    cores take the nodes that are ready, of the longest remaining path first, then of the lowest number.

    Parameters
    ----------
    waiting
        Which unit waits for which.
    length
        The time of each unit.
    pool
        The pool of each unit that needs a core.
    cores
        The cores of each pool.
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
        """Run all units; the units that need a core in the order in which they began.

        Afterwards `core` says which core each of them got.
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
    """The longest path from each unit on, with its own time."""
    rest: dict[int, float] = {}
    for unit in reversed(list(nx.topological_sort(waiting))):
        rest[unit] = length[unit] + max((rest[after] for after in waiting.successors(unit)), default=0.0)
    return rest
