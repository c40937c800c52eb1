"""The evaluation of operators that every device runs one by one."""

from __future__ import annotations

import numpy as np

from partitioner.evaluation.frame import completed, device_loads, read_solution
from partitioner.evaluation.makespan import makespan_of
from partitioner.evaluation.notes import notes_on_levels
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import placement_shape
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.evaluation.violations import violations_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.pass_order import ADDED, order_is_open, with_pass_order
from partitioner.workload.transfers import DEFAULT_TRANSFERS


def evaluate_makespan(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    """Return when the last operator ends; the load of a device is the time of its operators."""
    notes = (*((ADDED,) if order_is_open(graph) else ()), *notes_on_levels(devices))
    placed, copies, ordered = read_solution(with_pass_order(graph), devices, solution)
    found = makespan_of(placed, terms.transfers or DEFAULT_TRANSFERS, solution.execution_order)
    of_pass = [placed.graph.backward == b for b in (False, True)]
    compute = np.array(
        [np.bincount(placed.device[mine], found.length[mine], len(placed.names)) for mine in of_pass]
    )
    nothing = np.zeros_like(found.sent)
    into, out = np.array([found.received, nothing]), np.array([found.sent, nothing])
    evaluation = Evaluation(
        objective="makespan",
        value=found.value,
        loads=device_loads(placed, compute.sum(axis=0), compute, into, out),
        violations=violations_of(placed),
        shape=placement_shape(placed.graph, placed.device, placed.names),
        schedule=found.schedule,
        notes=notes,
        by_operator=True,
    )
    return completed(evaluation, placed, copies, ordered, terms)
