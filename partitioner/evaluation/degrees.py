"""The rules on the devices of a stage: copies of one degree, and equal parts of a batch."""

from __future__ import annotations

import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.workload.graph_validation import node_name


def degree_violations(placed: Placed, copies: Replicas) -> tuple[str, ...]:
    """Return a message for each stage of several degrees, or whose devices are no multiple of its degree."""
    found: list[str] = []
    if (placed.degree == 1).all():
        return ()
    for stage in np.unique(placed.device).tolist():
        nodes = np.flatnonzero(placed.device == stage)
        degrees = placed.degree[nodes]
        first, other = int(nodes[0]), int(nodes[np.argmax(degrees != degrees[0])])
        name, devices = placed.names[stage], int(copies.devices[stage])
        if (degrees != degrees[0]).any():
            found.append(
                f"the nodes of {name} have several degrees: {node_name(placed.graph, first)} "
                f"{placed.degree[first]}, {node_name(placed.graph, other)} {placed.degree[other]}"
            )
        elif devices % degrees[0]:
            found.append(f"the stage of {name} has {devices} devices, which are no multiple of {degrees[0]}")
    return tuple(found)


def batch_violations(placed: Placed, copies: Replicas, microbatches: int | None) -> tuple[str, ...]:
    """Return a message for each stage whose copies do not divide a batch, or if all copies are too many."""
    assert microbatches is not None
    stages = np.unique(placed.device).tolist()
    found = [
        f"the {copies.count[stage]} copies of the stage of {placed.names[stage]} do not divide "
        f"the {microbatches} microbatches of a batch"
        for stage in stages
        if microbatches % copies.count[stage]
    ]
    together = int(copies.count[stages].sum())
    if together > microbatches:
        found.append(
            f"all stages have {together} copies, more than the {microbatches} microbatches of a batch"
        )
    return tuple(found)
