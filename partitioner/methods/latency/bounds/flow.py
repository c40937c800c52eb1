"""The weakened graph of a problem for lower bounds, with the best time of every node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.latency.program.seats import Mask
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import SampleProblem

OFTEN = 100  # nodes, edges or nets between two readings of the clock


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
    for u, v in settings.watched(edges, OFTEN):
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
    for v in settings.watched(range(problem.n), OFTEN):
        before = problem.predecessors.row(v)
        if len(before) == 1 and len(problem.successors.row(before[0])) == 1:
            u = int(before[0])
            if problem.group[u] == problem.group[v] and problem.backward[u] == problem.backward[v]:
                head[v] = head[u]
    return head


def _nets(problem: SampleProblem, label: Ints, settings: Settings) -> list[tuple[int, list[int], float]]:
    nets = []
    for e, cost in settings.watched(enumerate(problem.nets.cost.tolist()), OFTEN):
        source = int(label[problem.nets.source[e]])
        readers = sorted(set(label[problem.nets.pins.row(e)].tolist()) - {source})
        if readers:
            nets.append((source, readers, cost))
    return nets
