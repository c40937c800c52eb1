"""The warm start of a call, in the form that methods take."""

from __future__ import annotations

import numpy as np

from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.solution import AnySolution, Solution, solution_of
from partitioner.methods.expand import parts_of
from partitioner.methods.method import Part
from partitioner.planning.evaluate import evaluate
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem
from partitioner.problem.variants import SampleProblem
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.pipeline_settings import Regime

USUAL = Regime()


def start_from(
    problem: Problem, graph: Graph, devices: Devices, warm_start: AnySolution | None, regime: Regime = USUAL
) -> tuple[list[Part] | None, Ints | None]:
    """Return the parts of a warm start, and for latency the subgraph of every supernode, shape (n,).

    Both are None unless it is feasible and of the requested shape, if devices are in levels or groups, and
    if they have several stages.
    """
    if warm_start is None or devices.levels or devices.groups or regime.has_virtual_stages:
        return None, None
    start = solution_of(warm_start)
    if 1 + max(map(len, start.replicas.values()), default=0) > regime.replicas:
        return None, None
    evaluation = _evaluated(problem, graph, devices, start, regime)
    if not evaluation.feasible or (problem.ordered and not evaluation.shape.is_chain):
        return None, None
    order = evaluation.shape.order or [load.name for load in evaluation.loads if load.nodes]
    parts = parts_of(problem, graph, devices, start.placement, order, start.replicas)
    return parts, subgraphs_of(problem, graph, evaluation.schedule)


def unused_start(
    devices: Devices, split: str, warm_start: AnySolution | None, parts: list[Part] | None
) -> tuple[str, ...]:
    """Return a note if a warm start was given and :func:`start_from` made no parts of it."""
    if warm_start is None or parts is not None:
        return ()
    if devices.levels or devices.groups:
        where = "levels" if devices.levels else "groups"
        return (f"the warm start is not used: none is where devices are in {where}",)
    return (f"the warm start is not used: it breaks a rule, or it is no {split} split as asked for",)


def subgraphs_of(problem: Problem, graph: Graph, schedule: Schedule | None) -> Ints | None:
    """Return the index of every supernode's subgraph, shape (n,); None without subgraphs."""
    if schedule is None:
        return None
    slot = np.zeros(problem.n, dtype=np.int64)
    for run in schedule.entries:
        slot[[problem.member[graph.position[node]] for node in run.nodes]] = run.index or 0
    return slot


def _evaluated(
    problem: Problem, graph: Graph, devices: Devices, start: Solution, regime: Regime
) -> Evaluation:
    """Return the evaluation of the warm start; only for latency does it depend on the objective."""
    if not isinstance(problem, SampleProblem):
        return evaluate(
            graph,
            devices,
            start.placement,
            replicas=start.replicas or None,
            order=start.order if problem.pipeline else None,
            schedule=regime.schedule,
            microbatches=regime.microbatches,
            constraints=regime.constraints,
            split=problem.split,
        )
    return evaluate(
        graph,
        devices,
        start.placement,
        "latency",
        subgraphs_per_accelerator=problem.subgraphs,
        subgraphs=start.subgraphs,
        constraints=regime.constraints,
    )
