"""CP-SAT takes a start, tells of layouts and bounds on its way, and keeps to the cutoff."""

from __future__ import annotations

import numpy as np

from partitioner import DeviceKind, Devices, Graph
from partitioner.methods.latency.layout import SubgraphLayout, one_subgraph_each
from partitioner.methods.latency.program.scheduling import ScheduleTask, solve_schedule
from partitioner.methods.solvers.backends.backend import SolverLimits
from partitioner.problem.contract import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import SampleProblem
from tests.contracted import contract_to

GRAPH = Graph.from_arrays(
    {"accelerator": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], [5.0, 1.0, 7.0], size=[1.0] * 4
)
PROBLEM = contract_to(
    SampleProblem,
    GRAPH,
    Devices((DeviceKind("accelerator", 2, memory=2.0),)),
    Goal(Measure.ONE_SAMPLE, "convex", subgraphs=1),
)


def test_the_start_is_taken_and_news_is_told() -> None:
    told: list[tuple[SubgraphLayout | None, float]] = []
    start = one_subgraph_each(np.array([0, 0, 1, 1]))
    task = ScheduleTask(PROBLEM, 7.0, 4.0, start)
    answer = solve_schedule(task, SolverLimits(10.0), lambda layout, bound: told.append((layout, bound)))
    assert answer.stop == "optimal"
    assert answer.values is not None
    assert answer.values.place.tolist() == [0, 0, 1, 1]
    assert abs(answer.bound - 6.0) < 1e-6
    assert any(layout is not None for layout, _ in told)


def test_nothing_is_found_below_the_optimum() -> None:
    answer = solve_schedule(ScheduleTask(PROBLEM, 5.9), SolverLimits(10.0), lambda layout, bound: None)
    assert answer.stop == "infeasible"
    assert answer.values is None
    assert answer.bound == np.inf
