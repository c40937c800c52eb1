"""The evaluation of the latency of a single sample (paper, Appendix A)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np

from partitioner.evaluation.cores import Cores
from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.frame import completed, device_loads, read_solution
from partitioner.evaluation.notes import notes_on_open_order
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.precedence import subgraph_violations, waiting_graph
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Schedule, schedule_of
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.subgraphs import Units, units_of
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph, Ints


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
