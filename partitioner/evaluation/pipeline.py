"""Costs of pipelines with replicas, slower links between groups of devices, and a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.frame import device_loads
from partitioner.evaluation.links import StageLinks, batch_exchange_times, exchange_times, links_of
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas, shared_out
from partitioner.workload.exchange import is_once_a_batch
from partitioner.workload.graph import Floats
from partitioner.workload.in_flight import Held, samples_in_flight

RESYNC = 4  # transfers of its weights for an exchange among copies by a parameter server (Piper, PipeDream)


@dataclass(frozen=True, eq=False)
class PlacedPipeline:
    """A placement as a pipeline.

    Parameters
    ----------
    placed, replicas
        The device of every node, and the devices that share stages.
    order
        The positions of the stages' devices, first to last.
    schedule, microbatches
        As in :func:`partitioner.evaluate`.
    piper
        Whether costs are those of Piper's model: every edge between stages carries a tensor of its own, and
        copies exchange their weights once a batch, by :data:`RESYNC` transfers.
    """

    placed: Placed
    replicas: Replicas
    order: tuple[int, ...]
    schedule: str | None = None
    microbatches: int | None = None
    piper: bool = False


@dataclass(frozen=True, eq=False)
class DeviceCosts:
    """The average time of each device for a sample; the time of a stage is divided among its replicas.

    Parameters
    ----------
    load, sync
        Shape (devices,): how long the device is busy, and the time of the exchange of weights among replicas.
    compute, transfer_in, transfer_out
        Shape (2, devices) each: the parts of the load, forward and backward.
    """

    load: Floats
    sync: Floats
    compute: Floats
    transfer_in: Floats
    transfer_out: Floats


def costs_of(pipeline: PlacedPipeline) -> DeviceCosts:
    """Return the average times of each device for a sample (paper, Appendices H.2 and H.3)."""
    placed, replicas = pipeline.placed, pipeline.replicas
    links = links_of(placed, replicas)
    into, out = transfer_times(placed, links.slow, by_edge=pipeline.piper)
    compute, count = compute_times(placed), replicas.count
    busy = loads_of(placed.devices.communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    sync = _exchange(pipeline, links)
    added = placed.devices.synchronisation == "added"
    load = busy / count + sync if added else np.maximum(busy / count, sync)
    lead = replicas.lead
    return DeviceCosts(
        load[lead], sync[lead], *(times[:, lead] / count[lead] for times in (compute, into, out))
    )


def _exchange(pipeline: PlacedPipeline, links: StageLinks) -> Floats:
    """Return the average time for a sample of the exchange of weights, shape (devices,)."""
    placed, batch = pipeline.placed, pipeline.microbatches
    if pipeline.piper:
        assert batch is not None
        return exchange_times(placed, pipeline.replicas, links) * (RESYNC / batch)
    if batch is not None and is_once_a_batch(placed.devices.exchange, pipeline.schedule, batch):
        return batch_exchange_times(placed, pipeline.replicas, links) / batch
    return exchange_times(placed, pipeline.replicas, links)


def batch_time(pipeline: PlacedPipeline, load: Floats) -> float:
    """Return the time of a batch that fills and drains the pipeline.

    This is the sum of the loads, plus the largest load for each microbatch after the first.
    """
    assert pipeline.microbatches is not None
    return float(load[~pipeline.replicas.further].sum() + (pipeline.microbatches - 1) * load.max())


def loads_with_replicas(
    placed: Placed, replicas: Replicas, costs: DeviceCosts, memory: Floats
) -> tuple[DeviceLoad, ...]:
    """Return an entry for each device, replicas included; `memory` has shape (devices,)."""
    loads = device_loads(placed, costs.load, costs.compute, costs.transfer_in, costs.transfer_out)
    return tuple(
        replace(
            loads[lead],
            name=name,
            memory=float(memory[i]),
            sync=float(costs.sync[i]),
            replica_of=None if lead == i else placed.names[lead],
        )
        for i, (name, lead) in enumerate(zip(placed.names, replicas.lead.tolist(), strict=True))
    )


def memory_of(pipeline: PlacedPipeline) -> tuple[Floats, dict[int, str]]:
    """Return the memory of each device, shape (devices,), and a remark on that of each stage."""
    placed = pipeline.placed
    less = shared_out(placed, pipeline.replicas)
    if pipeline.schedule is None:
        return (placed.memory - less)[pipeline.replicas.lead], {}
    held = held_by_stage(pipeline.replicas, pipeline.order, pipeline.schedule, pipeline.microbatches)
    memory = scheduled_memory(placed, held) - less
    return memory[pipeline.replicas.lead], {stage: in_words(found) for stage, found in held.items()}


# The most memory that the devices of a pipeline hold at once under a schedule.


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
