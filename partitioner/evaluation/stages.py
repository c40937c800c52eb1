"""Evaluations by loads: a load is the time that a device is busy for a sample (paper, Sections 5.1, 5.3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.evaluation.costs import compute_times, loads_of, transfer_times
from partitioner.evaluation.degrees import batch_violations, degree_violations
from partitioner.evaluation.frame import completed, device_loads, read_solution
from partitioner.evaluation.notes import (
    notes_on_cache,
    notes_on_exchange,
    notes_on_levels,
    notes_on_memory,
    notes_on_microbatches,
    notes_on_times,
    notes_on_zero,
)
from partitioner.evaluation.order import in_order, order_violations
from partitioner.evaluation.pipeline import (
    PlacedPipeline,
    batch_time,
    costs_of,
    loads_with_replicas,
    memory_of,
)
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.time_parts import notes_on_parts
from partitioner.evaluation.violations import violations_of
from partitioner.evaluation.virtual_stages import evaluate_virtual_stages
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.virtual_stages.schedules import VIRTUAL


def evaluate_throughput(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the largest load over the devices, forward and backward together."""
    if terms.schedule in VIRTUAL or solution.stage_of is not None:
        return evaluate_virtual_stages(graph, devices, solution, terms)
    piped = (
        bool(terms.schedule or solution.replicas or solution.alternatives or devices.levels or devices.groups)
        or solution.order is not None
    )
    placed, copies, ordered = read_solution(graph, devices, solution)
    found = (
        _pipeline(placed, copies, ordered, terms, False) if piped else plain_evaluation(placed, by_pass=False)
    )
    exchanged = notes_on_exchange(placed, copies, terms.schedule, terms.microbatches)
    notes = (
        *notes_on_memory(graph, terms.schedule),
        *notes_on_cache(graph),
        *notes_on_times(graph),
        *notes_on_levels(devices),
        *(exchanged or notes_on_microbatches(terms.schedule, terms.microbatches)),
        *notes_on_zero(placed, copies),
        *notes_on_parts(placed, found.loads),
    )
    return completed(replace(found, notes=notes), placed, copies, ordered, terms)


def evaluate_gpipe(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the largest forward load plus the largest backward load (paper, Appendix D)."""
    placed, copies, ordered = read_solution(graph, devices, solution)
    return completed(plain_evaluation(placed, by_pass=True), placed, copies, ordered, terms)


def evaluate_batch(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the time of a batch that fills and drains the pipeline."""
    placed, copies, ordered = read_solution(graph, devices, solution)
    found = _pipeline(placed, copies, ordered, terms, True)
    notes = (
        *notes_on_memory(graph, terms.schedule),
        *notes_on_cache(graph),
        *notes_on_times(graph),
        *notes_on_levels(devices),
        *notes_on_exchange(placed, copies, terms.schedule, terms.microbatches),
        *notes_on_zero(placed, copies),
        *notes_on_parts(placed, found.loads),
    )
    samples = terms.microbatches or 1
    return completed(replace(found, notes=notes), placed, copies, ordered, terms, samples=samples)


def evaluate_piper(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return the largest load in Piper's model, which has copies of a stage take equal parts of a batch."""
    placed, copies, ordered = read_solution(graph, devices, solution)
    found = _pipeline(placed, copies, ordered, terms, batch=False, piper=True)
    broken = batch_violations(placed, copies, terms.microbatches)
    notes = (*notes_on_memory(graph, terms.schedule), *notes_on_levels(devices))
    found = replace(found, objective="piper", notes=notes, violations=found.violations + broken)
    return completed(found, placed, copies, ordered, terms)


def _pipeline(
    placed: Placed,
    copies: Replicas,
    ordered: tuple[int, ...] | None,
    terms: Terms,
    batch: bool,
    piper: bool = False,
) -> Evaluation:
    form = placement_shape(placed.graph, placed.device, placed.names)
    shape, order = in_order(placed, form, ordered)
    pipeline = PlacedPipeline(placed, copies, order, terms.schedule, terms.microbatches, piper)
    costs, (memory, held) = costs_of(pipeline), memory_of(pipeline)
    value = batch_time(pipeline, costs.load) if batch else float(costs.load.max())
    piped = batch or ordered is not None or terms.schedule is not None or copies.further.any()
    violations = order_violations(placed, form, ordered) if piped else ()
    violations += degree_violations(placed, copies)
    violations += violations_of(placed, np.where(copies.further, 0.0, memory), held)
    loads = loads_with_replicas(placed, copies, costs, memory)
    return Evaluation("batch" if batch else "throughput", value, loads, violations, shape)


# Evaluations by the loads of devices alone: no replicas, no levels, each part of the memory once.


def plain_evaluation(placed: Placed, by_pass: bool) -> Evaluation:
    """Return the largest load of a device, or the largest forward plus the largest backward load."""
    communication = placed.devices.communication
    compute = compute_times(placed)
    into, out = transfer_times(placed)
    load = loads_of(communication, compute.sum(axis=0), into.sum(axis=0), out.sum(axis=0))
    of_pass = loads_of(communication, compute, into, out)
    value = of_pass.max(axis=1).sum() if by_pass else load.max()
    loads = device_loads(placed, load, compute, into, out)
    shape = placement_shape(placed.graph, placed.device, placed.names)
    return Evaluation("gpipe" if by_pass else "throughput", float(value), loads, violations_of(placed), shape)
