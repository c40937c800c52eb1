"""The weakened graph of a problem for lower bounds, with the best time of every node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from partitioner.methods.latency.seats import Mask
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import SampleProblem


@dataclass(frozen=True)
class SerialBoundEffort:
    """How large the blocks of the serial bound are.

    Parameters
    ----------
    widest, ideals
        The most nodes of a block whose cuts have costs, and the most ideals.
    smallest, sides
        The share of a device's memory below which a node off the spine is ignored, and the most of these
        nodes.
    often
        Nodes, edges or nets between two readings of the clock.
    """

    widest: int = 60
    ideals: int = 4_000
    smallest: float = 0.01
    sides: int = 5
    often: int = 100


EFFORT = SerialBoundEffort()


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
    for v in settings.watched(range(n), EFFORT.often):
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
        for u in settings.watched(range(len(flow.size)), EFFORT.often)
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
    for u, v in settings.watched(kept, EFFORT.often):
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
    for u in settings.watched(range(n), EFFORT.often):
        for v in after[u]:
            if v not in on_path:
                low[v] = max(low[v], low[u])
    for u in settings.watched(reversed(range(n)), EFFORT.often):
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
        for source, readers, cost in settings.watched(flow.nets, EFFORT.often)
    ]
    return replace(flow, paid=paid, size=size, nets=nets)


@dataclass(frozen=True, eq=False)
class Flow:
    """A weakened graph, whose nodes, edges and transfers are some or all of the problem's.

    Parameters
    ----------
    paid, free
        Shape (n,): the shortest time on a kind that pays for transfers, and on one that does not.
    size
        Shape (n,): the memory of each node.
    after, before
        Successors and predecessors of each node; nodes are numbered in a topological order.
    nets
        Source, readers and cost of every tensor.
    group, backward
        Shape (n,): the group of each node, whose nodes share a device; and whether the node is of the
        backward pass.
    together
        Whether the nodes of a group and pass must be in one subgraph.
    """

    paid: Floats
    free: Floats
    size: Floats
    after: list[list[int]]
    before: list[list[int]]
    nets: list[tuple[int, list[int], float]]
    group: Ints
    backward: Mask
    together: bool

    @property
    def unit(self) -> Ints:
        """Shape (n,): nodes with the same number are in one subgraph, if they are in any."""
        return 2 * self.group + self.backward if self.together else np.arange(len(self.size))


def flow_for(problem: SampleProblem, settings: Settings) -> Flow:
    """Return the graph of a problem; with one subgraph per device, runs inside a group are merged.

    In a run each node is the only predecessor of the next one, which is its only successor. With one
    subgraph per device such a run is never cut, and a CPU gains nothing by cutting it.
    """
    head = _runs(problem, settings) if problem.subgraphs == 1 else np.arange(problem.n)
    kept, label = np.unique(head, return_inverse=True)
    work = np.where((problem.count > 0)[:, None], problem.work(), np.inf)
    paid = work[problem.pays].min(axis=0, initial=np.inf)
    free = work[~problem.pays].min(axis=0, initial=np.inf)
    after: list[set[int]] = [set() for _ in kept]
    before: list[set[int]] = [set() for _ in kept]
    owners = label[problem.successors.owners()].tolist()
    edges = zip(owners, label[problem.successors.items].tolist(), strict=True)
    for u, v in settings.watched(edges, EFFORT.often):
        if u != v:
            after[u].add(v)
            before[v].add(u)
    return Flow(
        paid=_added(paid, label),
        free=_added(free, label),
        size=_added(problem.size, label),
        after=[sorted(each) for each in after],
        before=[sorted(each) for each in before],
        nets=_nets(problem, label, settings),
        group=problem.group[kept],
        backward=problem.backward[kept],
        together=problem.subgraphs == 1,
    )


def _added(value: Floats, label: Ints) -> Floats:
    return np.asarray(np.bincount(label, value, label.max() + 1), dtype=np.float64)


def _runs(problem: SampleProblem, settings: Settings) -> Ints:
    """Return the first node of the run that each node is in, shape (n,)."""
    head = np.arange(problem.n)
    for v in settings.watched(range(problem.n), EFFORT.often):
        before = problem.predecessors.row(v)
        if len(before) == 1 and len(problem.successors.row(before[0])) == 1:
            u = int(before[0])
            if problem.group[u] == problem.group[v] and problem.backward[u] == problem.backward[v]:
                head[v] = head[u]
    return head


def _nets(problem: SampleProblem, label: Ints, settings: Settings) -> list[tuple[int, list[int], float]]:
    nets = []
    for e, cost in settings.watched(enumerate(problem.nets.cost.tolist()), EFFORT.often):
        source = int(label[problem.nets.source[e]])
        readers = sorted(set(label[problem.nets.pins.row(e)].tolist()) - {source})
        if readers:
            nets.append((source, readers, cost))
    return nets
