"""The evaluation of the latency of a single sample (paper, Appendix A)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.frame import completed, device_loads, read_solution
from partitioner.evaluation.notes import notes_on_open_order
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Schedule, schedule_of
from partitioner.evaluation.shape import placement_shape, returns
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.subgraphs import Units, units_of
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph, Ints
from partitioner.workload.graph_validation import node_name


def evaluate_latency(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return when the last subgraph or node of a single sample ends."""
    placed, copies, ordered = read_solution(graph, devices, solution)
    found = latency_of(placed, terms.subgraphs_per_accelerator, solution.subgraphs, terms.limited_cpus)
    evaluation = Evaluation(
        objective="latency",
        value=found.value,
        loads=device_loads(placed, found.load, found.compute, found.transfer_in, found.transfer_out),
        violations=found.violations + violations_of(placed),
        shape=placement_shape(placed.graph, placed.device, placed.names),
        schedule=found.schedule,
        notes=notes_on_open_order(graph),
    )
    return completed(evaluation, placed, copies, ordered, terms)


# The time of a single sample (paper, Section 4 and Appendix A).


@dataclass(frozen=True, eq=False)
class Latency:
    """The time of one sample, and its parts.

    Parameters
    ----------
    value
        The largest finish time; infinity if there is no schedule.
    load
        Shape (devices,): how long each device is busy.
    compute, transfer_in, transfer_out
        Shape (2, devices) each: the parts of the load, forward and backward.
    violations
        Messages on the rules that the subgraphs break.
    schedule
        When each unit runs; None if the subgraphs wait for one another in a cycle.
    """

    value: float
    load: Floats
    compute: Floats
    transfer_in: Floats
    transfer_out: Floats
    violations: tuple[str, ...]
    schedule: Schedule | None


def latency_of(
    placed: Placed, limit: int, subgraphs: Mapping[Any, int] | None, limited_cpus: bool
) -> Latency:
    """Return the latency if subgraphs of accelerators and nodes of CPUs run as soon as possible.

    Parameters
    ----------
    placed
        The placement.
    limit
        How many subgraphs of each pass an accelerator may hold.
    subgraphs
        Index of the subgraph of every node of an accelerator; None for as few subgraphs as possible.
    limited_cpus
        Whether each CPU runs one node at a time; otherwise any number of nodes.

    Raises
    ------
    WorkloadError
        If an index is missing or not an integer of at least 0, or an id is not that of a node.
    """
    units = units_of(placed, subgraphs)
    parts = _parts(units)
    length = loads_of(
        placed.devices.communication, parts["compute"], parts["transfer_in"], parts["transfer_out"]
    )
    waiting = waiting_graph(units)
    violations = subgraph_violations(units, waiting, limit)
    device, schedule = units.device, None
    if nx.is_directed_acyclic_graph(waiting):
        device = _on_cores(units, waiting, length) if limited_cpus else device
        schedule = schedule_of(units, device, waiting, length, parts)
    value = math.inf if schedule is None else max((run.finish for run in schedule.entries), default=0.0)
    shares = {name: _by_device(units, device, times) for name, times in parts.items()}
    load = _by_device(units, device, length).sum(axis=0) if schedule is None else _busy(placed, schedule)
    return Latency(value=value, load=load, violations=violations, schedule=schedule, **shares)


def _parts(units: Units) -> dict[str, Floats]:
    """Return processing and transfer times of every unit, computed as if each unit were a device."""
    apart = replace(
        units.placed,
        names=("",) * len(units.index),
        device=units.of,
        kind=units.placed.kind[units.device],
    )
    into, out = transfer_times(apart)
    times = {"transfer_in": into, "compute": compute_times(apart), "transfer_out": out}
    return {name: of_pass.sum(axis=0) for name, of_pass in times.items()}


def _by_device(units: Units, device: Ints, times: Floats) -> Floats:
    total = np.zeros((2, len(units.placed.names)))
    np.add.at(total, (units.backward.astype(int), device), times)
    return total


def _busy(placed: Placed, schedule: Schedule) -> Floats:
    """Return for how long at least one entry runs on each device; entries are in order of start."""
    number = {name: i for i, name in enumerate(placed.names)}
    busy, until = np.zeros(len(number)), np.zeros(len(number))
    for run in schedule.entries:
        i = number[run.device]
        busy[i] += max(0.0, run.finish - max(run.start, until[i]))
        until[i] = max(until[i], run.finish)
    return busy


def _on_cores(units: Units, waiting: nx.DiGraph[int], length: Floats) -> Ints:
    """Return the device of each unit if CPU nodes share the cores of their kind.

    An edge is added to `waiting` from each node on a core to the next one there.
    """
    placed = units.placed
    pool = {u: int(placed.kind[d]) for u, d in enumerate(units.device) if units.index[u] is None}
    cores = defaultdict(list)
    for d, k in enumerate(placed.kind.tolist()):
        if placed.names[d] in placed.devices.names or not placed.devices.kinds[k].count:
            cores[k].append(d)
    engine = Cores(waiting, length, pool, cores)
    device, last = units.device.copy(), dict[int, int]()
    for unit in engine.run():
        device[unit] = engine.core[unit]
        if device[unit] in last:
            waiting.add_edge(last[device[unit]], unit)
        last[device[unit]] = unit
    return device


# List scheduling of CPU nodes: which core runs which node, and in what order.


class Cores:
    """A list scheduler of units, in which a unit that needs a core runs on a core of its pool.

    A unit that needs no core begins as soon as the units that it waits for have ended. At each point in time
    first all ends are processed; then the free cores take the units that are ready, the one with the longest
    remaining path first, and of equal ones the one with the lowest number.

    Parameters
    ----------
    waiting
        An edge from each unit to those that wait for it.
    length
        Shape (units,): the time of each unit.
    pool
        For each unit that needs a core the number of its pool.
    cores
        For each pool its cores.
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
        """Run all units and return those that need a core, in the order in which they began.

        Afterwards `core` has the core of each of them.
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
    """Return for each unit the length of the longest path from it, including its own time."""
    rest: dict[int, float] = {}
    for unit in reversed(list(nx.topological_sort(waiting))):
        rest[unit] = length[unit] + max((rest[after] for after in waiting.successors(unit)), default=0.0)
    return rest


# The order in which subgraphs wait for one another, and the rules that they break (paper, Appendix A.1).


def waiting_graph(units: Units) -> nx.DiGraph[int]:
    """Return a graph with an edge to each unit from the units whose output or device it waits for."""
    waiting: nx.DiGraph[int] = nx.DiGraph()
    waiting.add_nodes_from(range(len(units.index)))
    edges = units.of[units.placed.graph.edges]
    between = edges[edges[:, 0] != edges[:, 1]]
    _, first = np.unique(between[:, 0] * len(units.index) + between[:, 1], return_index=True)
    waiting.add_edges_from(between[np.sort(first)].tolist())
    subgraphs = [unit for unit, index in enumerate(units.index) if index is not None]
    waiting.add_edges_from(
        (before, after)
        for before, after in pairwise(subgraphs)
        if units.device[before] == units.device[after]
    )
    return waiting


def subgraph_violations(units: Units, waiting: nx.DiGraph[int], limit: int) -> tuple[str, ...]:
    """Return a message for each broken rule on subgraphs: their number, contiguity, and cyclic waiting."""
    return (*_too_many(units, limit), *_torn(units), *_circle(units, waiting))


def _too_many(units: Units, limit: int) -> list[str]:
    counts: dict[tuple[int, bool], int] = {}
    beyond: dict[tuple[int, bool], int] = {}
    for unit, index in enumerate(units.index):
        if index is not None:
            where = int(units.device[unit]), bool(units.backward[unit])
            counts[where] = counts.get(where, 0) + 1
            if counts[where] == limit + 1:
                beyond[where] = unit
    names = units.placed.names
    return [
        f"{names[where[0]]} holds {counts[where]} {_pass(units, unit)} subgraphs, it may hold at most "
        f"{limit}: {_first_node(units, unit)} is in one more"
        for where, unit in beyond.items()
    ]


def _torn(units: Units) -> list[str]:
    graph = units.placed.graph
    first_cpu = sum(index is not None for index in units.index)
    found = returns(graph, np.minimum(units.of, first_cpu), np.ones(len(graph), dtype=bool))
    return [
        f"{_pass(units, unit)} subgraph {units.index[unit]} of {_device(units, unit)} is not contiguous: "
        f"a path leaves it and returns at {node_name(graph, node)}"
        for unit, node in sorted(found.items())
        if unit != first_cpu
    ]


def _circle(units: Units, waiting: nx.DiGraph[int]) -> list[str]:
    if nx.is_directed_acyclic_graph(waiting):
        return []
    first: dict[str, int] = {}
    for unit, _ in nx.find_cycle(waiting):
        first.setdefault(_device(units, unit), unit)
    parts = [f"{device} ({_first_node(units, unit)})" for device, unit in first.items()]
    return [f"subgraphs wait for one another: {', '.join(parts)}"]


def _device(units: Units, unit: int) -> str:
    return units.placed.names[int(units.device[unit])]


def _pass(units: Units, unit: int) -> str:
    return "backward" if units.backward[unit] else "forward"


def _first_node(units: Units, unit: int) -> str:
    return node_name(units.placed.graph, int(np.argmax(units.of == unit)))
