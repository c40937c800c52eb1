"""What would make a workload fit that does not: less memory in training, divided layers, narrower weights.

Each remedy is tried: it is named only if there is a plan with it. Tries are short, without a search for the
best plan, so that one that is not named may help all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from partitioner.base.errors import PartitionerError
from partitioner.evaluation.text.figures import amount
from partitioner.methods.halving import Halving
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.training_states import (
    ACTIVATIONS,
    COUNT,
    PARAMETERS,
    WORKSPACE,
    with_training_states,
)

Attempt = Callable[..., Plan]  # of graph, devices, time_limit: any plan within some seconds, or an error
SECONDS = 5.0  # after which only first plans are looked for
QUICK, LONGER = 1e-3, 0.3  # seconds of a try: the first plan alone, and a short search
STEPS = 6  # halvings of the range in which the least memory is
REPLICAS = 8
TRAINING: tuple[dict[str, Any], ...] = (  # from the smallest change to the largest
    {"optimizer": "adam_8bit"},
    {"zero": 1, "data_parallel": REPLICAS},
    {"recompute": "full"},
    {"zero": 3, "data_parallel": REPLICAS},
    {"recompute": "full", "zero": 3, "data_parallel": REPLICAS},
)
DEGREES = (2, 4, 8)
WEIGHTS = {"int8": 1.0, "int4": 4.25 / 8}  # bytes of a parameter, factors included


def remedies(graph: Graph, devices: Devices, attempt: Attempt) -> tuple[str, ...]:
    """Return sentences on how much memory a workload without a plan lacks, and what would make it fit.

    There are none if memory is not what is missing. Errors of tries are passed over.

    Parameters
    ----------
    graph, devices
        The workload.
    attempt
        Looks for any plan of a graph on devices within `time_limit` seconds; raises if there is none.
    """
    tries = _Tries(attempt)
    limited = [kind for kind in devices.kinds if kind.count and kind.memory is not None]
    plan = tries.plan(graph, _scaled(devices, np.inf)) if limited else None
    if plan is None:
        return ()
    said = []
    factor = _least_factor(tries, graph, devices, plan)
    for kind in limited if np.isfinite(factor) else ():
        assert kind.memory is not None
        more = amount((factor - 1) * kind.memory)
        missing = f"{more}B ({(factor - 1) * kind.memory:,.0f} bytes)"
        said.append(f"the nearest plan found lacks {missing} of memory on each device of kind {kind.name}")
    found = (words for words, other in _remedies(graph) if tries.plan(other, devices) is not None)
    return (*said, *(f"it fits with {words}" for words in found))


class _Tries:
    """Looks for plans, in all for a few seconds."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt, self.end = attempt, time.perf_counter() + SECONDS

    def plan(self, graph: Graph, devices: Devices) -> Plan | None:
        """Return any plan; None if none is found in the time."""
        for seconds in (QUICK, LONGER):
            with suppress(PartitionerError):
                return self.attempt(graph, devices, time_limit=seconds)
            if time.perf_counter() > self.end:
                break
        return None


def _least_factor(tries: _Tries, graph: Graph, devices: Devices, plan: Plan) -> float:
    """Return the least multiple of the memory of all devices with which a plan was found."""
    halving = Halving(1.0, _needed(devices, plan))
    for middle in islice(halving.thresholds(), 1, 1 + STEPS):
        found = tries.plan(graph, _scaled(devices, middle))
        halving.learn(middle, np.inf if found is None else -np.inf)
        if found is not None:
            halving.high = min(halving.high, _needed(devices, found))
    return halving.high


def _needed(devices: Devices, plan: Plan) -> float:
    """Return the multiple of the memory of all devices that a plan needs."""
    limits = {kind.name: kind.memory for kind in devices.kinds}
    held = [(load.memory, limits[load.kind]) for load in plan.devices]
    return max(
        (memory / limit if limit else np.inf for memory, limit in held if memory and limit is not None),
        default=1.0,
    )


def _scaled(devices: Devices, factor: float) -> Devices:
    """Return the devices with a multiple of their memory; infinity for no limit."""
    kinds = [
        kind
        if kind.memory is None
        else replace(kind, memory=None if np.isinf(factor) else kind.memory * factor)
        for kind in devices.kinds
    ]
    return replace(devices, kinds=tuple(kinds))


def _remedies(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """Yield options in words, and the graph that they make."""
    for options in TRAINING:
        with suppress(PartitionerError):
            yield (
                ", ".join(f"{name} = {value}" for name, value in options.items()),
                with_training_states(graph, **options),
            )
    top = graph.extras.top
    if "model" not in top or graph.alternatives:
        return  # layers of other files cannot be divided
    for degree in DEGREES:
        words = (
            f"tensor = {degree * top.get('tensor', 1)} (each device then stands for that number, estimated)"
        )
        yield words, _divided(graph, degree)
    if not graph.backward.any():
        for dtype, width in WEIGHTS.items():
            yield f"weight_dtype = {dtype}", _narrowed(graph, width)


def _divided(graph: Graph, degree: int) -> Graph:
    """Return the graph of a config as each of some devices sees it that divide its layers, about."""
    parts = graph.parts.copy()
    parts[[*range(ACTIVATIONS + 1), WORKSPACE]] /= degree
    return replace(graph, parts=parts, cache=graph.cache / degree)


def _narrowed(graph: Graph, width: float) -> Graph:
    """Return the graph whose parameters have a width in bytes, where that is narrower."""
    parts = graph.parts.copy()
    told: list[Mapping[str, Any]] = list(graph.extras.nodes) or [{}] * len(graph)
    count = np.array([node.get(COUNT, np.inf) for node in told], dtype=float)
    parts[PARAMETERS] = np.minimum(parts[PARAMETERS], count * width)
    return replace(graph, parts=parts)
