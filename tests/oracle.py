"""An exhaustive oracle: the best chain over all placements, sharing no code with the methods.

It tries every assignment of colour classes and lone nodes to devices (equal devices once), computes
the loads from the definition, and keeps those whose devices can be ordered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partitioner import Devices, Graph

Rows = NDArray[np.int64]


def best_chain_value(graph: Graph, devices: Devices) -> float | None:
    """The smallest largest load over all feasible chains; None if there is none."""
    atom, atoms = _atoms(graph)
    kind = [k for k, entry in enumerate(devices.kinds) for _ in range(entry.count)]
    placed = _assignments(atoms, [entry.count for entry in devices.kinds])[:, atom]
    keep = _allowed(graph, devices, placed, kind) & _fits(graph, devices, placed, kind)
    placed = placed[keep]
    placed = placed[_is_chain(graph, placed, len(kind))]
    return float(_largest_load(graph, devices, placed, kind).min()) if len(placed) else None


def _atoms(graph: Graph) -> tuple[Rows, int]:
    """The unit that each node is placed with."""
    names = [("color", c) if c >= 0 else ("node", i) for i, c in enumerate(graph.color.tolist())]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names]), len(number)


def _assignments(atoms: int, counts: list[int]) -> Rows:
    """All assignments in which a device is used only after its equals of lower index."""
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    rows = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros((1, len(counts)), dtype=np.int64)
    for _ in range(atoms):
        grown, grown_used = [], []
        for k, count in enumerate(counts):
            for index in range(count):
                may = used[:, k] >= index
                chosen = np.full((int(may.sum()), 1), first[k] + index)
                after = used[may].copy()
                after[:, k] = np.maximum(after[:, k], index + 1)
                grown.append(np.concatenate((rows[may], chosen), axis=1))
                grown_used.append(after)
        rows, used = np.concatenate(grown), np.concatenate(grown_used)
    return rows


def _allowed(graph: Graph, devices: Devices, placed: Rows, kind: list[int]) -> NDArray[np.bool_]:
    may = np.array([graph.allowed[graph.kinds.index(devices.kinds[k].name)] for k in kind])
    return np.asarray(may[placed, np.arange(len(graph))].all(axis=1))


def _fits(graph: Graph, devices: Devices, placed: Rows, kind: list[int]) -> NDArray[np.bool_]:
    fits = np.ones(len(placed), dtype=bool)
    for d, k in enumerate(kind):
        limit = devices.kinds[k].memory
        if limit is not None:
            fits &= (placed == d) @ graph.size <= limit * (1 + 1e-9)
    return fits


def _is_chain(graph: Graph, placed: Rows, count: int) -> NDArray[np.bool_]:
    """No cycle among the devices over forward edges and mirrored edges of orphans."""
    reach = np.zeros((len(placed), count, count), dtype=bool)
    row = np.arange(len(placed))
    for source, target in _arcs(graph):
        moved = placed[:, source] != placed[:, target]
        reach[row[moved], placed[moved, source], placed[moved, target]] = True
    for via in range(count):
        reach |= reach[:, :, via, None] & reach[:, None, via, :]
    return np.asarray(~reach[:, np.arange(count), np.arange(count)].any(axis=1))


def _arcs(graph: Graph) -> list[tuple[int, int]]:
    forward_colors = {c for c, back in zip(graph.color, graph.backward, strict=True) if not back and c >= 0}
    orphan = [
        bool(back) and c not in forward_colors for c, back in zip(graph.color, graph.backward, strict=True)
    ]
    arcs = []
    for u, v in graph.edges.tolist():
        if not graph.backward[v]:
            arcs.append((u, v))
        elif graph.backward[u] and (orphan[u] or orphan[v]):
            arcs.append((v, u))
    return arcs


def _largest_load(graph: Graph, devices: Devices, placed: Rows, kind: list[int]) -> NDArray[np.float64]:
    largest = np.zeros(len(placed))
    tensors = _tensors(graph)
    for d, k in enumerate(kind):
        here = placed == d
        compute = here @ graph.time[graph.kinds.index(devices.kinds[k].name)]
        into, out = np.zeros(len(placed)), np.zeros(len(placed))
        if devices.kinds[k].pays_communication:
            for source, users, cost in tensors:
                used_here = here[:, users].any(axis=1)
                used_elsewhere = ~here[:, users].all(axis=1)
                into += cost * (~here[:, source] & used_here)
                out += cost * (here[:, source] & used_elsewhere)
        load = {
            "sequential": compute + into + out,
            "overlapped": np.maximum(compute, into + out),
            "duplex": np.maximum(compute, np.maximum(into, out)),
        }[devices.communication]
        largest = np.maximum(largest, load)
    return largest


def _tensors(graph: Graph) -> list[tuple[int, list[int], float]]:
    tensors: list[tuple[int, list[int], float]] = []
    for u in range(len(graph)):
        out = [(v, c) for (s, v), c in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True) if s == u]
        if len({c for _, c in out}) == 1:
            tensors.append((u, [v for v, _ in out], out[0][1]))
        else:
            tensors += [(u, [v], c) for v, c in out]
    return tensors
