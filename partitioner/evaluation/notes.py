"""Notes on an evaluation: what the workload does not determine, and which options have no effect."""

from __future__ import annotations

import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.exchange import FOR_EVERY_SAMPLE, is_once_a_batch
from partitioner.workload.extras import MOST_ZERO
from partitioner.workload.graph import Graph
from partitioner.workload.pass_order import order_is_open

ACTIVATIONS = MEMORY_PARTS.index("activations")
LIMITED = ("gpipe", "1f1b")  # hold no more samples than a batch has
ONE_SAMPLE = (None, "inference", "single_stream")  # no more than one sample's activations are held


def notes_on_open_order(graph: Graph) -> tuple[str, ...]:
    """Return a note if the graph lets the backward pass begin before the forward pass."""
    if not order_is_open(graph):
        return ()
    rule = "the backward pass does not wait for the forward pass"
    return (f"no edge leads from a forward to a backward node: {rule}",)


def notes_on_levels(devices: Devices) -> tuple[str, ...]:
    """Return a note for every level with a single group: no transfer leads out of it."""
    kind = next(kind for kind in devices.kinds if kind.count)
    lone = [level.name for level in devices.levels if level.size(kind.name) == kind.count]
    return tuple(f"level {name!r} has one group: its slowdown has no effect" for name in lone)


def notes_on_microbatches(schedule: str | None, microbatches: int | None) -> tuple[str, ...]:
    """Return a note if a number of microbatches is given that the loads and the memory do not depend on.

    Examples
    --------
    >>> notes_on_microbatches(None, 8)
    ('microbatches = 8 has no effect on loads and memory without a schedule',)
    """
    if microbatches is None or schedule in LIMITED:
        return ()
    under = "without a schedule" if schedule is None else f"under schedule {schedule}"
    return (f"microbatches = {microbatches} has no effect on loads and memory {under}",)


def notes_on_memory(graph: Graph, schedule: str | None) -> tuple[str, ...]:
    """Return a note if the schedule keeps activations of several samples and the graph gives none.

    Examples
    --------
    >>> notes_on_memory(Graph.from_arrays({"gpu": [1.0]}, size=2.0), "1f1b")[0][:45]
    'activations are not known, the graph gives on'
    """
    if schedule in ONE_SAMPLE or graph.parts[ACTIVATIONS].any():
        return ()
    given = "only `size`" if graph.size.any() and not graph.parts.any() else "no `activations`"
    return (
        f"activations are not known, the graph gives {given}: the memory does not count what samples in "
        "flight hold, whatever the schedule",
    )


def notes_on_cache(graph: Graph) -> tuple[str, ...]:
    """Return a note if the graph has a cache of samples in flight, for objectives that do not count it.

    Examples
    --------
    >>> notes_on_cache(Graph.from_arrays({"gpu": [1.0]}, cache=2.0))
    ('the cache of samples in flight is not counted: only objective capacity counts it',)
    """
    if not graph.cache.any():
        return ()
    return ("the cache of samples in flight is not counted: only objective capacity counts it",)


def notes_on_times(graph: Graph) -> tuple[str, ...]:
    """Return a note if times were measured on a device of another name, or scaled to a measured step."""
    times = graph.extras.top.get("times")
    if not isinstance(times, str) or not times.startswith("curves") or ", " not in times:
        return ()
    return (f"times: {times}",)


def notes_on_exchange(
    placed: Placed, copies: Replicas, schedule: str | None, microbatches: int | None
) -> tuple[str, ...]:
    """Return a note on how often replicas exchange weights, if there are some that do."""
    weights = np.bincount(placed.device, placed.graph.weights, len(placed.names))
    linked = np.array([kind.bandwidth is not None for kind in placed.devices.kinds])
    if not ((copies.count > 1) & (weights > 0) & linked[placed.kind]).any():
        return ()
    if is_once_a_batch(placed.devices.exchange, schedule, microbatches):
        return (f"replicas exchange weights once a batch of {microbatches} samples, in a ring",)
    why = ""
    if schedule in FOR_EVERY_SAMPLE:
        why = f", as schedule {schedule} does"
    elif microbatches is None and placed.devices.exchange != "paper":
        why = ": with microbatches they would do so once a batch"
    return (f"replicas exchange weights for every sample{why}",)


def notes_on_zero(placed: Placed, copies: Replicas) -> tuple[str, ...]:
    """Return a note on what the copies of stages divide, if there are copies that do."""
    zero = placed.graph.extras.zero
    if not placed.graph.divided.any() or (copies.count == 1).all():
        return ()
    what = "the optimizer's state" + " and gradients" * (zero >= 2)
    rest = ", parameters only the data_parallel replicas of a device" * (zero == MOST_ZERO)
    return (f"zero = {zero}: the copies of a stage divide {what}{rest}",)


def notes_on_replicas(placed: Placed, copies: Replicas) -> tuple[str, ...]:
    """Return a note for every kind whose replicas have weights and no bandwidth to exchange them with."""
    weights = np.bincount(placed.device, placed.graph.weights, len(placed.names))
    silent = {int(placed.kind[i]) for i in np.flatnonzero((copies.count > 1) & (weights > 0)).tolist()}
    kinds = [placed.devices.kinds[k] for k in sorted(silent)]
    return tuple(
        f"the exchange of weights among replicas is not counted: device kind {kind.name!r} has no bandwidth"
        for kind in kinds
        if kind.bandwidth is None
    )
