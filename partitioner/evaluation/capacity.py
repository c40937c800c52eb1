"""The capacity of a placement: how many samples can be in flight before a device's memory is full."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.stages import evaluate_throughput
from partitioner.evaluation.terms import Terms
from partitioner.workload.cache import holding
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph

MOST = 2**53  # above this count floats tell no sample from the next one
ROUNDING = 1 + 1e-9  # of loads that are compared with a limit


def evaluate_capacity(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the most samples in flight with which every device fits its memory.

    Device d holds W_d without any sample (as :func:`evaluate_throughput` counts it), keeps c_d of each of
    its samples, and has the memory M_d. The r_d devices of its stage take the samples in turn:
    one of them keeps the n / r_d of n samples in flight, rounded up. The capacity of d is r_d times the floor
    of (M_d - W_d) / c_d, at least 0; the value is the least of these over the devices with c_d > 0, and
    infinity if none of these has a limit.

    Raises
    ------
    WorkloadError
        If no node has a cache, or the solution does not fit the workload.
    """
    check_cache(graph)
    found = evaluate_throughput(holding(graph, 0), devices, solution, terms)
    loads = _with_capacities(found.loads, _cache_by_device(graph, solution, found.loads), devices)
    value = min(math.inf if one.capacity is None else one.capacity for one in loads if one.cache)
    filled, copies = int(value) if math.isfinite(value) else 0, _copies(loads)
    return replace(
        found,
        objective="capacity",
        value=float(value),
        parts={},
        loads=tuple(
            replace(one, memory=one.memory + -(-filled // copies[_stage(one)]) * one.cache) for one in loads
        ),
        violations=found.violations + late_devices(loads, terms.max_time_per_sample),
    )


def check_cache(graph: Graph) -> None:
    """Refuse a graph without any cache, which nothing limits the samples of.

    Raises
    ------
    WorkloadError
        If the cache of every node is 0.
    """
    if not graph.cache.any():
        rule = "must be above 0 for at least one node: objective 'capacity' counts it for every sample"
        raise WorkloadError([Flaw("graph", "cache", "0 for every node", rule)])


def samples_that_fit(held: float, cache: float, limit: float) -> int | None:
    """Return how many samples fit in the memory that is left; None if there is no limit, or no cache.

    Examples
    --------
    >>> samples_that_fit(4.0, 2.5, 10.0), samples_that_fit(11.0, 2.5, 10.0)
    (2, 0)
    """
    if not cache or math.isinf(limit):
        return None
    return int(min(max(0.0, (limit - held) / cache), MOST))


def late_devices(loads: Sequence[DeviceLoad], limit: float | None) -> tuple[str, ...]:
    """Return a message for every device that takes longer for a sample than the limit allows."""
    return tuple(
        f"{one.name} takes {one.load:.6g} a sample, max_time_per_sample is {limit:.6g}"
        for one in loads
        if limit is not None and one.load > limit * ROUNDING
    )


def _cache_by_device(graph: Graph, solution: Solution, loads: Sequence[DeviceLoad]) -> Floats:
    """Return the cache of each of its samples on every device, shape (devices,)."""
    position = {one.name: i for i, one in enumerate(loads)}
    home = [position[solution.placement[node]] for node in graph.ids]
    own = np.bincount(home, graph.cache, len(loads)).astype(np.float64)
    return np.asarray(own[[position[_stage(one)] for one in loads]])


def _with_capacities(loads: Sequence[DeviceLoad], cache: Floats, devices: Devices) -> tuple[DeviceLoad, ...]:
    """Return the loads with the cache of a sample and the capacity of every device."""
    limits, copies = {kind.name: kind.memory_limit for kind in devices.kinds}, _copies(loads)
    found = []
    for one, each in zip(loads, cache.tolist(), strict=True):
        fit = samples_that_fit(one.memory, each, limits[one.kind])
        found.append(replace(one, cache=each, capacity=None if fit is None else copies[_stage(one)] * fit))
    return tuple(found)


def _stage(one: DeviceLoad) -> str:
    """Return the name of the first device of the stage."""
    return one.replica_of or one.name


def _copies(loads: Sequence[DeviceLoad]) -> Counter[str]:
    """Return how many devices each stage has, by the name of its first device."""
    return Counter(map(_stage, loads))
