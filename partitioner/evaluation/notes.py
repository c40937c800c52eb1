"""What a reader of a value should know: what the workload leaves open."""

from __future__ import annotations

import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.pass_order import ADDED, order_is_open

ACTIVATIONS = MEMORY_PARTS.index("activations")
LIMITED = ("gpipe", "1f1b")  # hold no more samples than a batch has
ONE_SAMPLE = (None, "inference", "single_stream")  # no more than one sample's activations are held


def notes_on(graph: Graph, objective: str, schedule: str | None) -> tuple[str, ...]:
    """Return what the graph does not say although the objective or the schedule depends on it.

    Examples
    --------
    >>> notes_on(Graph.from_arrays({"gpu": [1.0]}, size=2.0), "throughput", "1f1b")[0][:45]
    'activations are not known, the graph gives on'
    """
    open_order = order_is_open(graph) if objective in ("makespan", "latency") else False
    if open_order and objective == "makespan":
        return (ADDED,)
    if open_order:
        rule = "the backward pass does not wait for the forward pass"
        return (f"no edge leads from a forward to a backward node: {rule}",)
    return notes_on_memory(graph, schedule)


def notes_on_settings(
    devices: Devices, objective: str, schedule: str | None, microbatches: int | None
) -> tuple[str, ...]:
    """Return a note for every level with one group, and for a number of microbatches that nothing reads.

    Examples
    --------
    >>> notes_on_settings(Devices.accelerated(2), "throughput", None, 8)
    ('microbatches = 8 has no effect on objective throughput without a schedule',)
    """
    kind = next(kind for kind in devices.kinds if kind.count)
    lone = [level.name for level in devices.levels if level.size(kind.name) == kind.count]
    notes = tuple(f"level {name!r} has one group: its slowdown has no effect" for name in lone)
    if microbatches is None or objective != "throughput" or schedule in LIMITED:
        return notes
    under = "without a schedule" if schedule is None else f"under schedule {schedule}"
    return (*notes, f"microbatches = {microbatches} has no effect on objective throughput {under}")


def notes_on_memory(graph: Graph, schedule: str | None) -> tuple[str, ...]:
    """Return a note if the schedule keeps activations of several samples and the graph gives none."""
    if schedule in ONE_SAMPLE or graph.parts[ACTIVATIONS].any():
        return ()
    given = "only `size`" if graph.size.any() and not graph.parts.any() else "no `activations`"
    return (
        f"activations are not known, the graph gives {given}: the memory does not count what samples in "
        "flight hold, whatever the schedule",
    )


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
