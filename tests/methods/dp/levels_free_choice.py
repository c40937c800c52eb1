"""The best pipeline over levels when any devices may share a stage and lie anywhere, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from partitioner import Devices, Graph, evaluate

Stages = list[tuple[str, ...]]


def best_free_choice(graph: Graph, devices: Devices, replicas: int) -> float:
    """The least value of a path graph over all cuts into stages and all choices of devices for them."""
    n = len(graph)
    best = float("inf")
    for cuts in range(n):
        for inner in combinations(range(1, n), cuts):
            bounds = (0, *inner, n)
            for stages in _choices(devices, cuts + 1, replicas):
                lead = [stage[0] for stage in stages]
                placement = {v: lead[i] for i, (a, b) in enumerate(pairwise(bounds)) for v in range(a, b)}
                further = {stage[0]: stage[1:] for stage in stages if len(stage) > 1}
                found = evaluate(graph, devices, placement, replicas=further or None, order=lead)
                if found.feasible:
                    best = min(best, found.value)
    return best


def _choices(devices: Devices, count: int, replicas: int) -> Iterator[Stages]:
    """All lists of `count` disjoint sets of devices of one kind, at most `replicas` each."""
    sets = [
        names
        for kind in devices.kinds
        for r in range(1, min(kind.count, replicas) + 1)
        for names in combinations([kind.device(i) for i in range(kind.count)], r)
    ]

    def grown(stages: Stages, used: frozenset[str]) -> Iterator[Stages]:
        if len(stages) == count:
            yield stages
            return
        for names in sets:
            if used.isdisjoint(names):
                yield from grown([*stages, names], used.union(names))

    return grown([], frozenset())
