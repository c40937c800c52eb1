"""What a reader of a value should know: what the workload leaves open."""

from __future__ import annotations

import numpy as np

from partitioner.columns import MEMORY_PARTS
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.graph import Graph
from partitioner.pass_order import ADDED, order_is_open

ACTIVATIONS = MEMORY_PARTS.index("activations")
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
