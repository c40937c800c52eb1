"""PipeDream's planner by exhaustive search: every cut, every replication, nothing shared with the package."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import networkx as nx

from partitioner.methods.baselines.pipedream.layers import Layers

Cost = tuple[float, float, float]


@dataclass(frozen=True)
class Ask:
    """What is asked of the planner, by the names of its arguments."""

    levels: tuple[tuple[int, float], ...]
    states: str = "antichains"
    straight: bool = False
    fewer_machines: bool = False


def exhaustive_time(layers: Layers, ask: Ask) -> float:
    """The best predicted time over all pipelines of a graph with one source; infinity if there is none."""
    return _Search(layers, ask).value(len(ask.levels) - 1, 0, None)


def ideals(layers: Layers) -> list[frozenset[int]]:
    """All non-empty ideals, in the order in which states are numbered."""
    n, edges = len(layers), layers.edges.tolist()
    subsets = (frozenset(s) for size in range(1, n + 1) for s in combinations(range(n), size))
    closed = [s for s in subsets if all(u in s for u, v in edges if v in s)]
    return sorted(closed, key=lambda s: (len(s), sum(1 << v for v in s)))


def crossing_layers(layers: Layers, ideal: frozenset[int]) -> set[int]:
    """The layers of an ideal whose output is needed outside."""
    return {u for u, v in layers.edges.tolist() if u in ideal and v not in ideal}


def augmented_layers(layers: Layers, ideal: frozenset[int]) -> set[int]:
    """The augmented antichain of an ideal."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(layers)))
    graph.add_edges_from(layers.edges.tolist())
    antichain = {v for v in ideal if not set(graph.successors(v)) & ideal}
    extra = set()
    for v in antichain:
        needed = nx.ancestors(graph, v)
        extra |= {u for u in needed if set(graph.successors(u)) - needed - {v}}
    return antichain | extra


class _Search:
    """State 0 is the empty ideal, the last one everything."""

    def __init__(self, layers: Layers, ask: Ask) -> None:
        self.ask = ask
        self.ideals = [frozenset[int](), *ideals(layers)]
        cut = crossing_layers if ask.states == "ideals" else augmented_layers
        self.output = [layers.activation[list(cut(layers, s))].sum() if s else 0.0 for s in self.ideals]
        self.compute = [layers.time[list(s)].sum() for s in self.ideals]
        self.weights = [layers.parameters[list(s)].sum() for s in self.ideals]
        self.last = len(self.ideals) - 1
        self.value = cache(self._value)

    def _value(self, level: int, start: int, end: int | None) -> float:
        """The best time between two states on all machines of a level; below no level, on one machine."""
        end = self.last if end is None else end
        if level < 0:
            return float(self.compute[end] - self.compute[start])
        machines = self.ask.levels[level][0]
        return min(self._pipelines(level, start, end, machines), default=math.inf)

    def _pipelines(self, level: int, start: int, end: int, budget: int) -> Iterator[float]:
        """The times of all pipelines between two states that are given exactly `budget` machines.

        With fewer machines allowed some of them may be idle, but not before the second state.
        """
        idle = range(budget if self.ask.fewer_machines and end > start + 1 else 1)
        for used in (budget - i for i in idle):
            if not self.ask.straight or used == 1:
                yield self._stage(level, start, end, used, first=True)
            for cut in range(start + 1, end):
                if not self.ideals[cut] < self.ideals[end]:
                    continue
                for replicas in range(1, 2 if self.ask.straight else used):
                    if replicas < used:
                        last = self._stage(level, cut, end, replicas, first=False)
                        for before in self._pipelines(level, start, cut, used - replicas):
                            yield max(before, last)

    def _stage(self, level: int, start: int, end: int, replicas: int, first: bool) -> float:
        """The largest of compute with synchronisation, input and output."""
        bandwidth = self.ask.levels[level][1]
        weights = self.weights[end] - self.weights[start]
        sync = 4 * (replicas - 1) * weights / (bandwidth * replicas) / self._share(level, first)
        time = float(self.value(level - 1, start, end) + sync) / replicas
        if first:
            return time
        transfers = [2 * self.output[start] / (bandwidth * replicas)]
        if end < self.last:
            transfers.append(2 * self.output[end] / (bandwidth * replicas))
        return max(time, *map(float, transfers))

    def _share(self, level: int, first: bool) -> int:
        below = [machines for machines, _ in self.ask.levels[:level]]
        return below[-1] if below and first else 1
