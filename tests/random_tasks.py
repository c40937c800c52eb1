"""Random operators to be placed one by one: ties, zeros, levels, limits, several tensors a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from partitioner import Devices, Graph, Level, Transfers, Workload, WorkloadError
from partitioner.problem.arrays import Ints
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.random_workloads import fitted, in_known_order, uneven_workload

SLOPES = (0.0, 0.5, 1.0, 2.0)
INTERCEPTS = (0.0, 0.0, 0.25, 1.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A workload with transfers, and what the methods see of it; `fitted` is the graph as devices run it."""

    graph: Graph
    devices: Devices
    transfers: Transfers
    fitted: Graph
    tasks: Tasks
    rng: np.random.Generator

    def names(self, device: Ints) -> dict[int | str, str]:
        """The placement in the user's words: `device` has shape (n,), by task."""
        kinds, tasks = self.devices.kinds, self.tasks
        name = [kinds[k].device(i) for k, i in zip(tasks.kind.tolist(), tasks.index.tolist(), strict=True)]
        return {self.graph.ids[v]: name[d] for v, d in zip(tasks.node.tolist(), device.tolist(), strict=True)}

    def ids(self, order: Ints) -> list[int | str]:
        """Tasks in the user's words."""
        return [self.graph.ids[v] for v in self.tasks.node[order].tolist()]


def task_cases(
    first: int, count: int, most_nodes: int = 20, most_devices: int = 5, contention: bool | None = None
) -> Iterator[Case]:
    """The valid ones of `count` seeds."""
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, most_nodes, most_devices)
        graph, devices = _with_more_edges(rng, _sparser(rng, graph)), _with_levels(rng, devices)
        graph = in_known_order(graph)
        try:
            Workload(graph, devices)
        except WorkloadError:
            continue
        transfers = _transfers(rng, len(devices.names), contention)
        ready = fitted(graph, devices)
        problem = contract_to(
            OperatorNodes, ready, devices, Goal(Measure.LAST_OPERATOR, "free", transfers=transfers)
        )
        yield Case(graph, devices, transfers, ready, problem.tasks, rng)


def random_order(case: Case) -> Ints:
    """All tasks in a random topological order."""
    before, out = case.tasks.before, np.zeros(case.tasks.n, dtype=bool)
    order: list[int] = []
    while len(order) < case.tasks.n:
        ready = [v for v in range(case.tasks.n) if not out[v] and out[before.row(v)].all()]
        order.append(int(case.rng.choice(ready)))
        out[order[-1]] = True
    return np.array(order, dtype=np.int64)


def random_devices(case: Case) -> Ints:
    """For each task any device that may run it."""
    may = np.isfinite(case.tasks.time)
    return np.array([case.rng.choice(np.flatnonzero(may[:, v])) for v in range(case.tasks.n)])


def _sparser(rng: np.random.Generator, graph: Graph) -> Graph:
    """Mostly with fewer edges and without colours, so that devices idle and much can run at once."""
    if rng.random() < 0.3:
        return graph
    kept = rng.random(len(graph.edges)) < rng.choice([0.2, 0.5])
    lone = np.where(rng.random(len(graph)) < rng.choice([0.3, 1.0]), -1, graph.color)
    return replace(graph, edges=graph.edges[kept], cost=graph.cost[kept], color=lone)


def _with_more_edges(rng: np.random.Generator, graph: Graph) -> Graph:
    """Now and then some edges twice, with the same cost or another."""
    if not len(graph.edges) or rng.random() < 0.6:
        return graph
    again = rng.integers(len(graph.edges), size=int(rng.integers(1, 4)))
    cost = np.where(rng.random(len(again)) < 0.5, graph.cost[again], 0.75)
    edges, costs = np.concatenate((graph.edges, graph.edges[again])), np.concatenate((graph.cost, cost))
    mixed = rng.permutation(len(edges))
    return replace(graph, edges=edges[mixed], cost=costs[mixed])


def _with_levels(rng: np.random.Generator, devices: Devices) -> Devices:
    """Pairs of devices in servers, where the numbers allow."""
    present = [kind for kind in devices.kinds if kind.count]
    if rng.random() < 0.5 or any(kind.count != present[0].count or kind.count % 2 for kind in present):
        return devices
    half = {kind.name: kind.count // 2 for kind in present}
    return replace(devices, levels=(Level("server", half, float(rng.choice([1.0, 3.0]))),))


def _transfers(rng: np.random.Generator, count: int, contention: bool | None) -> Transfers:
    """By the factors of the devices, one line for all pairs, or one for each."""
    shared = bool(rng.random() < 0.5) if contention is None else contention
    form = rng.random()
    if form < 0.4:
        return Transfers(intercept=float(rng.choice(INTERCEPTS)), contention=shared)
    shape = (count, count) if form < 0.8 else ()
    slope, intercept = rng.choice(SLOPES, shape).tolist(), rng.choice(INTERCEPTS, shape).tolist()
    return Transfers(slope, intercept, shared)
