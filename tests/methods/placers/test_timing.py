"""The compiled makespan is the evaluator's, operator by operator, for any placement and order."""

from __future__ import annotations

import math

import pytest

from partitioner import evaluate
from partitioner.methods.placers.bound import makespan_bound
from partitioner.methods.placers.timing import finish_times, makespan
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.random_tasks import random_devices, random_order, task_cases


@pytest.mark.parametrize("contention", [False, True])
@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 100), *(pytest.param(first, 300, marks=pytest.mark.slow) for first in range(0, 3000, 300))],
)
def test_finish_times_are_the_evaluators(first: int, count: int, contention: bool) -> None:
    """Exactly, with zero times, free links, edges twice and several tensors a node."""
    waited = 0
    for case in task_cases(first, count, contention=contention):
        device, order = random_devices(case), random_order(case)
        found = evaluate(
            case.graph,
            case.devices,
            case.names(device),
            "makespan",
            transfers=case.transfers,
            execution_order=case.ids(order),
        )
        assert makespan(case.tasks, device, order) == found.value
        assert found.schedule is not None
        finish = {run.nodes[0]: run.finish for run in found.schedule.entries}
        mine = finish_times(case.tasks, device, order)
        assert [finish[case.graph.ids[v]] for v in case.tasks.node.tolist()] == mine.tolist()
        waited += found.value > sum(load.compute[0] + load.compute[1] for load in found.loads)
    assert waited > count / 15


@pytest.mark.parametrize(("first", "count"), [(0, 120), pytest.param(400, 2000, marks=pytest.mark.slow)])
def test_no_placement_is_below_the_bound(first: int, count: int) -> None:
    """Random placements of single tasks do not go below it, and some are on it."""
    tight = 0
    for case in task_cases(first, count, 6, 3, contention=False):
        goal = Goal(Measure.LAST_OPERATOR, "free", transfers=case.transfers)
        bound = makespan_bound(contract_to(OperatorNodes, case.fitted, case.devices, goal))
        value = makespan(case.tasks, random_devices(case), random_order(case))
        if math.isfinite(bound) and len(set(case.tasks.group.tolist())) == case.tasks.n:
            tight += math.isclose(value, bound)
            fits = (case.tasks.size.sum() <= case.tasks.limit).all()
            assert value >= bound * (1 - 1e-9) or not fits
    assert tight > count / 8
