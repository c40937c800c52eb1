"""A series of separators through the graph, and the blocks between them, for the serial bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from partitioner.methods.latency.bounds.flow import OFTEN, Flow
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Ints


@dataclass(frozen=True, eq=False)
class Spine:
    """Separators in order; every path between two of them that is kept passes those between.

    Parameters
    ----------
    separators
        Nodes, ascending.
    inner
        For each pair of neighbours the nodes on paths between them, ascending.
    edges
        For each such block the kept edges among its inner nodes and its two separators.
    """

    separators: list[int]
    inner: list[list[int]]
    edges: list[list[tuple[int, int]]]

    def places(self, n: int) -> Ints:
        """Return 2 k for separator k, 2 k + 1 for inner nodes of the block after it, -1 for others, (n,)."""
        place = np.full(n, -1)
        place[self.separators] = 2 * np.arange(len(self.separators))
        for k, inner in enumerate(self.inner):
            place[inner] = 2 * k + 1
        return place


def heaviest_path(flow: Flow, settings: Settings) -> list[int]:
    """Return a path with much time and memory, as a bound along it grows with both."""
    n = len(flow.size)
    time = np.minimum(flow.paid, flow.free)
    weight = time / max(time.sum(), 1e-300) + flow.size / max(flow.size.sum(), 1e-300) + 1e-9
    value, best = np.zeros(n), [-1] * n
    for v in settings.watched(range(n), OFTEN):
        best[v] = max(flow.before[v], key=lambda u: value[u], default=-1)
        value[v] = weight[v] + (value[best[v]] if best[v] >= 0 else 0.0)
    path = [int(value.argmax())]
    while best[path[-1]] >= 0:
        path.append(best[path[-1]])
    return path[::-1]


def spine_along(flow: Flow, path: list[int], reach: int, settings: Settings) -> Spine:
    """Return the spine of a path without the edges that pass over more than `reach` of its nodes."""
    low, high = _spans(flow, path, flow.after, settings)
    after = [
        [v for v in flow.after[u] if low[u] >= 0 and high[v] < len(path) and high[v] - low[u] <= reach]
        for u in settings.watched(range(len(flow.size)), OFTEN)
    ]
    low, high = _spans(flow, path, after, settings)
    kept = [(u, v) for u, targets in enumerate(after) for v in targets if low[u] >= 0 and high[v] < len(path)]
    covered = np.zeros(len(path) + 1, dtype=np.int64)
    for u, v in kept:
        if high[v] - low[u] > 1:
            covered[low[u] + 1] += 1
            covered[high[v]] -= 1
    separators = [i for i, passing in enumerate(np.cumsum(covered)[:-1].tolist()) if not passing]
    block = np.zeros(len(path) + 1, dtype=np.int64)
    block[separators] = 1
    block = np.cumsum(block) - 1
    edges: list[list[tuple[int, int]]] = [[] for _ in separators[1:]]
    for u, v in settings.watched(kept, OFTEN):
        edges[block[low[u]]].append((u, v))
    nodes = [path[i] for i in separators]
    inner = [
        sorted({node for edge in listed for node in edge} - set(ends))
        for listed, ends in zip(edges, pairwise(nodes), strict=True)
    ]
    return Spine(nodes, inner, edges)


def _spans(
    flow: Flow, path: list[int], after: list[list[int]], settings: Settings
) -> tuple[list[int], list[int]]:
    """Return the last position of the path that leads to each node, and the first that it leads to."""
    n, length = len(flow.size), len(path)
    low, high = [-1] * n, [length] * n
    for i, v in enumerate(path):
        low[v] = high[v] = i
    on_path = set(path)
    for u in settings.watched(range(n), OFTEN):
        for v in after[u]:
            if v not in on_path:
                low[v] = max(low[v], low[u])
    for u in settings.watched(reversed(range(n)), OFTEN):
        if u not in on_path:
            high[u] = min((high[v] for v in after[u]), default=length)
    return low, high


def with_group_members(flow: Flow, spine: Spine, settings: Settings) -> Flow:
    """Return the graph with the memory of nodes off the spine added to nodes of their group on it.

    The device of a node on the spine also holds its group. With one subgraph per device the nodes of a group
    and pass run together, so that time and nets are merged, too.
    """
    core = np.zeros(len(flow.size), dtype=bool)
    core[[*spine.separators, *(v for inner in spine.inner for v in inner)]] = True
    host = {int(flow.group[v]): v for v in np.flatnonzero(core).tolist()}
    same = {(int(flow.group[v]), bool(flow.backward[v])): v for v in np.flatnonzero(core).tolist()}
    paid, size, label = flow.paid.copy(), flow.size.copy(), list(range(len(flow.size)))
    for v in np.flatnonzero(~core).tolist():
        group = int(flow.group[v])
        if group in host:
            size[same.get((group, bool(flow.backward[v])), host[group])] += flow.size[v]
            size[v] = 0.0
        if flow.together and (group, bool(flow.backward[v])) in same:
            label[v] = same[group, bool(flow.backward[v])]
            paid[label[v]] += flow.paid[v]
    nets = [
        (label[source], sorted({label[v] for v in readers} - {label[source]}), cost)
        for source, readers, cost in settings.watched(flow.nets, OFTEN)
    ]
    return replace(flow, paid=paid, size=size, nets=nets)
