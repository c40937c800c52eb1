"""A solution says to every verb what its parts say when they are given one by one."""

from __future__ import annotations

import pytest

import partitioner as pt
from partitioner.evaluation.solution import PlanRecord, solution_of
from partitioner.schedule import simulate
from tests.instances import chain, training

GPUS = pt.Devices.accelerated(4)
LINE = pt.Graph.from_arrays({"accelerator": [4.0, 2.0, 2.0]}, [(0, 1), (1, 2)], 0.5)
STAGES: dict[int | str, str] = {0: "accelerator2", 1: "accelerator0", 2: "accelerator0"}
COPIES = {"accelerator2": ("accelerator1", "accelerator3")}
ORDER = ("accelerator2", "accelerator0")
REPLICATED = pt.Solution(STAGES, replicas=COPIES, order=ORDER)


def test_evaluate_takes_what_a_solution_knows() -> None:
    parts = pt.evaluate(LINE, GPUS, STAGES, replicas=COPIES, order=ORDER)
    assert pt.evaluate(LINE, GPUS, REPLICATED) == parts
    assert parts.value == 4.5  # 4 + 0.5 on three devices; 0.5 + 4 on one


def test_what_is_given_goes_before() -> None:
    found = pt.evaluate(LINE, GPUS, REPLICATED, replicas={})
    assert found.value == pt.evaluate(LINE, GPUS, STAGES).value


@pytest.mark.parametrize("objective", ["latency", "makespan"])
def test_solutions_of_other_objectives(objective: str) -> None:
    plan = pt.solve(training().graph, training().devices, objective)
    bare = pt.Solution(plan.placement, subgraphs=plan.subgraphs, execution_order=plan.execution_order)
    found = pt.evaluate(training().graph, training().devices, bare, objective)
    assert found.value == pytest.approx(plan.value)


def test_simulate_and_compare_take_one() -> None:
    one = simulate(LINE, GPUS, REPLICATED, "inference", 6)
    other = simulate(LINE, GPUS, STAGES, "inference", 6, replicas=COPIES, order=ORDER)
    assert one.makespan == other.makespan and one.devices == other.devices
    assert pt.compare_schedules(LINE, GPUS, REPLICATED, 6).bound == one.bound


def test_a_warm_start_and_a_certificate_take_one() -> None:
    graph, devices, optimum = chain().graph, chain().devices, chain().optimum
    known = pt.Solution(placement={0: "accelerator0", 1: "accelerator1", 2: "accelerator1"})
    assert pt.solve(graph, devices, warm_start=known, method="local_search").value == optimum
    assert pt.certify(graph, devices, known).bound == optimum


def test_a_plan_is_its_record() -> None:
    plan = pt.solve(chain().graph, chain().devices)
    record = solution_of(plan)
    assert isinstance(record, PlanRecord) and record.order == plan.stages
    assert solution_of(record) is record
