"""The evaluation of the latency of a single sample (paper, Appendix A)."""

from __future__ import annotations

from partitioner.evaluation.frame import completed, device_loads, read_solution
from partitioner.evaluation.latency import latency_of
from partitioner.evaluation.notes import notes_on_open_order
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph


def evaluate_latency(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return when the last subgraph or node of a single sample ends."""
    placed, copies, ordered = read_solution(graph, devices, solution)
    found = latency_of(placed, terms.subgraphs_per_accelerator, solution.subgraphs, terms.limited_cpus)
    evaluation = Evaluation(
        objective="latency",
        value=found.value,
        loads=device_loads(placed, found.load, found.compute, found.transfer_in, found.transfer_out),
        violations=found.violations + violations_of(placed),
        shape=placement_shape(placed.graph, placed.device, placed.names),
        schedule=found.schedule,
        notes=notes_on_open_order(graph),
    )
    return completed(evaluation, placed, copies, ordered, terms)
