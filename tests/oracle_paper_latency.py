"""A second oracle for latency, written from Appendix A of the paper alone (Figures 5 and 6).

Every node goes to the CPUs, which run as many nodes at once as are ready, or into one of the subgraph slots
of an accelerator; times follow from constraints (4) to (10) and (14). It shares nothing with the package's
evaluator or the other oracles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from partitioner import Devices, Graph
from tests.oracle_paper import Tensor, joined, listed, tensors_of


class Slot(NamedTuple):
    """Where a node runs: a device, and there a subgraph of its pass, None on a CPU."""

    device: int
    subgraph: int | None


Layout = Sequence[Slot]


def paper_latency(graph: Graph, devices: Devices, subgraphs: int) -> float:
    """The least latency of all layouts; infinity if none keeps the rules."""
    best, tensors = math.inf, tensors_of(graph)
    for layout in layouts(graph, devices, subgraphs):
        best = min(best, total_latency(graph, devices, tensors, layout))
    return best


def layouts(graph: Graph, devices: Devices, subgraphs: int) -> Iterator[Layout]:
    """Constraints (1), (2) and (3*): each node once, contiguous subgraphs, memory; colours share a device."""
    kinds = listed(devices)
    for layout in product(*(_slots(graph, v, devices, subgraphs) for v in range(len(graph)))):
        home: dict[int, int] = {}
        pairs = zip(graph.color.tolist(), layout, strict=True)
        held = [0.0] * len(kinds)
        for v, slot in enumerate(layout):
            held[slot.device] += float(graph.size[v])
        fits = all(k.memory is None or h <= k.memory * (1 + 1e-9) for k, h in zip(kinds, held, strict=True))
        if fits and all(c < 0 or home.setdefault(c, s.device) == s.device for c, s in pairs):
            yield layout


def _slots(graph: Graph, v: int, devices: Devices, subgraphs: int) -> list[Slot]:
    found = []
    for d, kind in enumerate(listed(devices)):
        if graph.allowed[graph.kinds.index(kind.times or kind.name)][v]:
            numbers = range(subgraphs) if kind.pays_communication else [None]
            found += [Slot(d, number) for number in numbers]
    return found


def total_latency(graph: Graph, devices: Devices, tensors: Sequence[Tensor], layout: Layout) -> float:
    """When the last output is in host memory; infinity if subgraphs have holes or wait in a circle."""
    unit = [_unit(graph, v, slot) for v, slot in enumerate(layout)]
    order = _in_order(graph, unit)
    if order is None or not _contiguous(graph, unit):
        return math.inf
    finish: dict[tuple[object, ...], float] = {}
    free: dict[int, float] = {}
    for one in order:
        before = [finish[unit[u]] for u, v in graph.edges.tolist() if unit[v] == one and unit[u] != one]
        start = max([*before, free.get(_device(one), 0.0)], default=0.0)
        finish[one] = start + _length(graph, devices, tensors, unit, one)
        if one[0] != "cpu":
            free[_device(one)] = finish[one]
    return max(finish.values(), default=0.0)


def _unit(graph: Graph, v: int, slot: Slot) -> tuple[object, ...]:
    """What runs without interruption: a node of a CPU, or a subgraph, the forward ones of a device first."""
    if slot.subgraph is None:
        return "cpu", slot.device, v
    return "subgraph", slot.device, bool(graph.backward[v]), slot.subgraph


def _device(one: tuple[object, ...]) -> int:
    assert isinstance(one[1], int)
    return one[1]


def _in_order(graph: Graph, unit: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]] | None:
    """The units, each behind its inputs (6), (9) and earlier subgraphs (14); None if there is a circle."""
    left = set(unit)
    waits = {(unit[u], unit[v]) for u, v in graph.edges.tolist() if unit[u] != unit[v]}
    accelerated = [one for one in left if one[0] == "subgraph"]
    waits |= {(a, b) for a, b in product(accelerated, repeat=2) if a[1] == b[1] and a[2:] < b[2:]}
    order = []
    while left:
        ready = [b for b in left if not any(a in left for a, c in waits if c == b)]
        if not ready:
            return None
        order += ready
        left -= set(ready)
    return order


def _contiguous(graph: Graph, unit: Sequence[tuple[object, ...]]) -> bool:
    """Definition 3.1 for every subgraph, over paths of its own pass."""
    edges = [(u, v) for u, v in graph.edges.tolist() if graph.backward[u] == graph.backward[v]]
    after: list[set[int]] = [set() for _ in unit]
    for _ in unit:
        for u, v in edges:
            after[u] |= {v} | after[v]
    return not any(
        unit[u] == unit[w] != unit[v]
        for u in range(len(unit))
        for v in after[u]
        for w in after[v]
        if unit[u][0] == "subgraph"
    )


def _length(
    graph: Graph,
    devices: Devices,
    tensors: Sequence[Tensor],
    unit: Sequence[tuple[object, ...]],
    one: tuple[object, ...],
) -> float:
    """Constraints (7) and (9): inputs in, processing, outputs out; a CPU moves nothing."""
    kind = listed(devices)[_device(one)]
    row = graph.time[graph.kinds.index(kind.times or kind.name)]
    compute = kind.time_factor * sum(float(row[v]) for v in range(len(graph)) if unit[v] == one)
    if one[0] == "cpu":
        return compute
    into = sum(t.cost for t in tensors if unit[t.maker] != one and any(unit[v] == one for v in t.users))
    out = sum(t.cost for t in tensors if unit[t.maker] == one and any(unit[v] != one for v in t.users))
    return joined(devices.communication, compute, into, out)
