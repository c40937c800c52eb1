"""A second oracle for loads, written from the text of the paper alone.

It follows Sections 3 and 5 and Appendices C, D, E and H.1, in plain Python over every placement of every
node. It shares nothing with the package's methods, its evaluator or the other oracles, so that a reading of
the paper that all of them share would be seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import NamedTuple

from partitioner import DeviceKind, Devices, Graph

Placement = Sequence[int]


class Tensor(NamedTuple):
    """What `maker` sends to all of `users` at once, for `cost`."""

    maker: int
    users: tuple[int, ...]
    cost: float


def paper_values(graph: Graph, devices: Devices, objective: str, microbatches: int = 1) -> dict[str, float]:
    """The least value over all chains, convex and free splits; infinity where there is none."""
    kinds, tensors = listed(devices), tensors_of(graph)
    best = dict.fromkeys(("chain", "convex", "free"), math.inf)
    for placed in placements(graph, kinds):
        value = objective_value(graph, devices.communication, kinds, tensors, placed, objective, microbatches)
        for shape, holds in (("free", _any), ("convex", is_convex), ("chain", is_chain)):
            if value < best[shape] and holds(graph, placed):
                best[shape] = value
    return best


def listed(devices: Devices) -> list[DeviceKind]:
    """The kind of every single device."""
    return [kind for kind in devices.kinds for _ in range(kind.count)]


def placements(graph: Graph, kinds: Sequence[DeviceKind]) -> Iterator[Placement]:
    """Section 3: every node on one device that may run it, colours together, sizes within the memory."""
    for placed in product(*(_may_run(graph, v, kinds) for v in range(len(graph)))):
        if _colours_together(graph, placed) and _fits(graph, kinds, placed):
            yield placed


def _may_run(graph: Graph, v: int, kinds: Sequence[DeviceKind]) -> list[int]:
    row = {kind: i for i, kind in enumerate(graph.kinds)}
    return [d for d, kind in enumerate(kinds) if graph.allowed[row[kind.times or kind.name]][v]]


def _colours_together(graph: Graph, placed: Placement) -> bool:
    home: dict[int, int] = {}
    return all(c < 0 or home.setdefault(c, d) == d for c, d in zip(graph.color.tolist(), placed, strict=True))


def _fits(graph: Graph, kinds: Sequence[DeviceKind], placed: Placement) -> bool:
    for d, kind in enumerate(kinds):
        held = sum(float(graph.size[v]) for v in range(len(graph)) if placed[v] == d)
        if kind.memory is not None and held > kind.memory * (1 + 1e-9):
            return False
    return True


def tensors_of(graph: Graph) -> list[Tensor]:
    """Section 3: one output a node; Appendix E.1: one an edge where the costs of its edges differ."""
    found = []
    for u in range(len(graph)):
        out = [(v, c) for (w, v), c in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True) if w == u]
        if len({c for _, c in out}) == 1:
            found.append(Tensor(u, tuple(v for v, _ in out), out[0][1]))
        else:
            found += [Tensor(u, (v,), c) for v, c in out]
    return found


def objective_value(
    graph: Graph,
    communication: str,
    kinds: Sequence[DeviceKind],
    tensors: Sequence[Tensor],
    placed: Placement,
    objective: str,
    microbatches: int,
) -> float:
    """The largest load; for GPipe the largest of each pass, added; for a batch with filling and draining."""
    loads: list[float] = []
    forward: list[float] = []
    backward: list[float] = []
    for d, kind in enumerate(kinds):
        shares = [device_share(graph, kind, d, tensors, placed, late) for late in (False, True)]
        both = [sum(pair) for pair in zip(*shares, strict=True)]
        for amounts, into in ((both, loads), (shares[0], forward), (shares[1], backward)):
            into.append(joined(communication, *amounts))
    if objective == "gpipe":
        return max(forward) + max(backward)
    return max(loads) if objective == "throughput" else sum(loads) + (microbatches - 1) * max(loads)


def device_share(
    graph: Graph, kind: DeviceKind, d: int, tensors: Sequence[Tensor], placed: Placement, backward: bool
) -> tuple[float, float, float]:
    """Processing, transfers in and transfers out of a device in one pass (constraints 18 to 21 of Figure 7).

    What goes out belongs to its maker's pass; what comes in to the backward pass if only that one uses it.
    """
    time = graph.time[graph.kinds.index(kind.times or kind.name)]
    mine = [v for v in range(len(graph)) if placed[v] == d and bool(graph.backward[v]) == backward]
    into = out = 0.0
    for maker, users, cost in tensors if kind.pays_communication else ():
        here = [bool(graph.backward[v]) for v in users if placed[v] == d]
        if placed[maker] != d and here and all(here) == backward:
            into += cost * kind.transfer_factor
        if maker in mine and len(here) < len(users):
            out += cost * kind.transfer_factor
    return sum(float(time[v]) for v in mine) * kind.time_factor, into, out


def joined(communication: str, compute: float, into: float, out: float) -> float:
    """Appendix H.1: one after another, transfers beside the processing, or all three beside one another."""
    if communication == "sequential":
        return compute + into + out
    return max(compute, into + out) if communication == "overlapped" else max(compute, into, out)


def is_convex(graph: Graph, placed: Placement) -> bool:
    """Definition 3.1 for the forward part of every device, over paths of the forward part."""
    after = _reachable(graph)
    forward = [v for v in range(len(graph)) if not graph.backward[v]]
    return not any(
        placed[u] == placed[w] != placed[v]
        for u, v, w in product(forward, repeat=3)
        if v in after[u] and w in after[v]
    )


def _reachable(graph: Graph) -> list[set[int]]:
    """For each forward node the forward nodes that its paths lead to."""
    after: list[set[int]] = [set() for _ in range(len(graph))]
    edges = [(u, v) for u, v in graph.edges.tolist() if not graph.backward[u] and not graph.backward[v]]
    for _ in range(len(graph)):
        for u, v in edges:
            after[u] |= {v} | after[v]
    return after


def is_chain(graph: Graph, placed: Placement) -> bool:
    """Whether the devices have an order in which no edge of the DP's graph leads back (Appendix E.1)."""
    crossing = {(placed[u], placed[v]) for u, v in _dp_edges(graph)}
    used = sorted(set(placed))
    return any(all(order.index(a) <= order.index(b) for a, b in crossing) for order in permutations(used))


def _dp_edges(graph: Graph) -> list[tuple[int, int]]:
    """Forward edges, and mirrored backward edges with an end that has no forward node of its colour."""
    with_forward = {c for c, late in zip(graph.color.tolist(), graph.backward, strict=True) if not late} - {
        -1
    }
    orphan = [bool(graph.backward[v]) and int(graph.color[v]) not in with_forward for v in range(len(graph))]
    found = []
    for u, v in graph.edges.tolist():
        if not graph.backward[u] and not graph.backward[v]:
            found.append((u, v))
        if graph.backward[u] and graph.backward[v] and (orphan[u] or orphan[v]):
            found.append((v, u))
    return found


def _any(graph: Graph, placed: Placement) -> bool:
    return True
