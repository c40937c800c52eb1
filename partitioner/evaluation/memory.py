"""The most memory that the devices of a pipeline hold at once under a schedule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.workload.graph import Floats
from partitioner.workload.in_flight import Held, samples_in_flight


def held_by_stage(
    replicas: Replicas, order: Sequence[int], schedule: str, microbatches: int | None
) -> dict[int, Held]:
    """Return the samples and versions of the weights that each device of a stage holds, by stage.

    `order` lists the stages from first to last.
    """
    behind, found = 0, {}
    for stage in reversed(order):
        count = int(replicas.count[stage])
        found[stage] = samples_in_flight(schedule, behind, count, microbatches)
        behind += count
    return found


def scheduled_memory(placed: Placed, stages: dict[int, Held]) -> Floats:
    """Return the memory that each device holds, shape (devices,).

    This is the sum of sizes, gradients and states of the optimizer, of the parameters of every version, of
    the activations of every sample in flight, and of the largest workspace.
    """
    graph, count = placed.graph, len(placed.names)
    samples, versions = np.ones(count), np.ones(count)
    for stage, found in stages.items():
        samples[stage], versions[stage] = found
    parameters, gradients, optimizer, activations, workspace = graph.parts
    once = np.bincount(placed.device, graph.size + gradients + optimizer, count)
    weights = versions * np.bincount(placed.device, parameters, count)
    stashed = samples * np.bincount(placed.device, activations, count)
    largest = np.zeros(count)
    np.maximum.at(largest, placed.device, workspace)
    return np.asarray(once + weights + stashed + largest)


def in_words(found: Held) -> str:
    """Return the number of samples in flight and versions of the weights, for a message on memory."""
    samples = f"{found.activations} sample{'s' if found.activations != 1 else ''} in flight"
    return f" ({samples}" + (f", {found.weights} versions of the weights)" if found.weights > 1 else ")")
