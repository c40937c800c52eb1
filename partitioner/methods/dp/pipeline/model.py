"""Costs, memory and limits of stages, in the arrays that the compiled walk reads."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.dp.pipeline.arrays import DeviceStates, MemoryModel, StageCosts, StageLimits
from partitioner.methods.dp.table import growth_of
from partitioner.problem.arrays import Floats
from partitioner.problem.pipeline import UNLIMITED, Pipeline
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.devices import COMMUNICATION_MODELS
from partitioner.workload.in_flight import samples_in_flight


def costs_of(problem: PipelineProblem) -> StageCosts:
    """Return the terms of the loads of stages."""
    nets, pipeline = problem.nets, problem.pipeline
    return StageCosts(
        work=np.ascontiguousarray(problem.work()),
        transfer_factor=problem.transfer_factor,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        net_start=nets.of_node.start,
        net=nets.of_node.items,
        pins=np.diff(nets.pins.start),
        source=nets.source,
        enter=nets.cost,
        leave=nets.cost,
        weights=pipeline.weights,
        bandwidth=pipeline.bandwidth,
        added=pipeline.added,
    )


def memory_model_of(problem: PipelineProblem, states: DeviceStates, behind: int = 0) -> MemoryModel:
    """Return the memory that stages take, with `behind` further devices behind all of them."""
    pipeline = problem.pipeline
    most = int(states.left.max(initial=0))
    samples, versions = _held(pipeline, behind + int(states.behind.max()), most)
    scheduled = float(pipeline.schedule is not None)
    lightest = [np.minimum.accumulate(table, axis=1) for table in (samples, versions)]
    return MemoryModel(
        size=problem.size,
        parameters=scheduled * pipeline.parameters,
        activations=scheduled * pipeline.activations,
        workspace=scheduled * pipeline.workspace,
        memory=problem.memory,
        in_flight=samples[behind:],
        versions=versions[behind:],
        least_in_flight=lightest[0][behind + states.behind[:, None], states.left],
        least_versions=lightest[1][behind + states.behind[:, None], states.left],
        staged=bool(np.ptp(samples[:, 1:]) > 0),
    )


def behind_matters(problem: PipelineProblem) -> bool:
    """Whether the memory that a stage needs depends on the devices behind it."""
    pipeline = problem.pipeline
    if pipeline.schedule is None:
        return False
    alone, last = (
        samples_in_flight(pipeline.schedule, behind, 1, pipeline.microbatches) for behind in (0, 1)
    )
    return alone != last


def least_memory(problem: PipelineProblem) -> Floats:
    """Return the least memory that each supernode takes on a device, shape (n,)."""
    pipeline = problem.pipeline
    if pipeline.schedule is None:
        return problem.size
    return problem.size + pipeline.parameters + pipeline.activations


def relax_memory(problem: PipelineProblem) -> Relaxation:
    """Return the relaxation in which every supernode takes the least memory that it can."""
    return relax(replace(problem, relaxed_size=least_memory(problem.relaxed())))


def stage_limits_of(problem: PipelineProblem) -> StageLimits:
    """Return the limits on every stage."""
    pipeline = problem.pipeline
    limits = pipeline.limits
    return StageLimits(
        nodes=pipeline.nodes,
        fewest_nodes=limits.nodes[0],
        most_nodes=limits.nodes[1],
        layer_start=pipeline.layers.start,
        layer=pipeline.layers.items,
        fewest_layers=limits.layers[0],
        most_layers=limits.layers[1],
        by_layers=limits.layers != (0, UNLIMITED),
        pinned=np.diff(pipeline.pinned.start),
        adjacent_start=pipeline.adjacent.start,
        adjacent=pipeline.adjacent.items,
        by_neighbours=limits.neighbours,
    )


def stage_growth(problem: PipelineProblem) -> Floats:
    """Return :func:`partitioner.methods.dp.table.growth_of`, shape (K, n); infinity if there are limits."""
    return np.full(problem.work().shape, np.inf) if is_bound(problem) else growth_of(problem)


def is_bound(problem: Problem) -> bool:
    """Whether the user's limits or pins to devices restrict which stages are allowed."""
    pipeline, limits = problem.pipeline, problem.limits
    pinned = pipeline is not None and len(pipeline.pinned.items) > 0
    return limits.rigid or limits.neighbours or pinned


def _held(pipeline: Pipeline, behind: int, most: int) -> tuple[Floats, Floats]:
    """Return samples and versions of weights that a stage holds, shape (behind + 1, most + 1) each."""
    if pipeline.schedule is None:
        return np.ones((behind + 1, most + 1)), np.ones((behind + 1, most + 1))
    return _held_under(pipeline.schedule, pipeline.microbatches, behind, most)


@lru_cache(maxsize=4)
def _held_under(schedule: str, microbatches: int | None, behind: int, most: int) -> tuple[Floats, Floats]:
    table = np.full((behind + 1, most + 1, 2), np.inf)
    for replicas in range(1, most + 1):
        table[:, replicas] = [
            samples_in_flight(schedule, b, replicas, microbatches) for b in range(behind + 1)
        ]
    return table[:, :, 0].copy(), table[:, :, 1].copy()
