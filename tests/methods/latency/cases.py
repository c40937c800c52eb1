"""Problems of latency of random workloads, and the evaluator's word on outcomes."""

from __future__ import annotations

import numpy as np

from partitioner import Devices, Evaluation, Graph, Workload, WorkloadError, evaluate
from partitioner.methods.method import Outcome
from partitioner.methods.places import places_of
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to
from tests.random_workloads import random_workload


def random_problem(
    seed: int, most_nodes: int, most_devices: int, subgraphs: int = 1
) -> tuple[Graph, Devices, SampleProblem] | None:
    """A random workload and its problem of latency; None if no device may run some node."""
    graph, devices = random_workload(np.random.default_rng(seed), most_nodes, most_devices)
    try:
        workload = Workload(graph, devices)
    except WorkloadError:
        return None
    goal = Goal(Measure.ONE_SAMPLE, "convex", subgraphs=subgraphs)
    return (
        workload.graph,
        workload.devices,
        contract_to(SampleProblem, workload.graph, workload.devices, goal),
    )


def judged(graph: Graph, devices: Devices, problem: SampleProblem, outcome: Outcome) -> Evaluation:
    """The evaluator's word on the outcome's plan."""
    assert outcome.parts is not None
    assert outcome.subgraph is not None
    place = places_of(problem, outcome.parts)[problem.member]
    counts = zip(devices.kinds, problem.count.tolist(), strict=True)
    names = [f"{kind.name}{i}" for kind, count in counts for i in range(count)]
    placement = {node: names[place[i]] for i, node in enumerate(graph.ids)}
    slot = outcome.subgraph[problem.member].tolist()
    subgraphs = {node: slot[i] for i, node in enumerate(graph.ids)}
    most = problem.subgraphs
    return evaluate(graph, devices, placement, "latency", subgraphs_per_accelerator=most, subgraphs=subgraphs)
