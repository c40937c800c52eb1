"""There is a plan however little time there is, made without compiled code, and it obeys every rule."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from partitioner import (
    Graph,
    InfeasibleError,
    NoPlanFound,
    Plan,
    Progress,
    WorkloadError,
    evaluate,
    load,
    solve,
)
from partitioner.base.interruption import CompilationStopped
from partitioner.methods.info import MethodInfo
from partitioner.planning.evaluate import evaluated
from partitioner.planning.first_plan import evaluation_of, find_first_plan
from partitioner.workload.devices import DeviceKind, Devices
from tests.random_pipelines import FEATURES, Case, random_case

BERT = Path(__file__).parents[2] / "instances" / "bert24_training.json"
RULES = ("objective", "constraints", "schedule", "microbatches")
NOTHING = 1e-6  # seconds
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"split": "convex"},
    {"split": "free"},
    {"objective": "gpipe", "split": "free"},
    {"objective": "batch", "microbatches": 8},
    {"objective": "latency"},
    {"objective": "makespan"},
    {"schedule": "1f1b"},
)
PROGRAM = """
import sys, partitioner as pt
workload = pt.load(sys.argv[1])
for asked in eval(sys.argv[2]):
    plan = pt.solve(workload.graph, workload.devices, time_limit=1e-6, **asked)
    assert plan.stop_reason == "time_limit" and 0 < plan.bound <= plan.value, asked
assert not {"numba", "ortools", "pulp"} & set(sys.modules)
"""


def first_plan(case: Case, asked: dict[str, Any]) -> Plan | None:
    """The plan of a run that is stopped before its method begins; None without one."""
    stop = threading.Event()
    stop.set()
    loads = patch.object(MethodInfo, "load", side_effect=NoPlanFound)
    try:
        with loads:
            return solve(case.graph, case.devices, replicas=case.replicas, stop=stop, **asked)
    except NoPlanFound:
        return None


@pytest.mark.parametrize("asked", ASKED)
def test_it_is_not_evaluated_again(asked: dict[str, Any]) -> None:
    """Where it is the answer, what the evaluator has said of it when it was made stands."""
    workload = load(BERT)
    with (
        patch("partitioner.planning.request.evaluated", side_effect=evaluated) as said,
        patch("partitioner.planning.run.find_first_plan", side_effect=find_first_plan) as made,
        patch("partitioner.planning.run.evaluation_of", side_effect=evaluation_of) as asked_for,
    ):
        plan = solve(workload.graph, workload.devices, time_limit=NOTHING, **asked)
        assert (plan.stop_reason, made.call_count, asked_for.call_count) == ("time_limit", 1, 1)
        before = said.call_count
        request, placement, subgraphs, known = asked_for.call_args.args
        assert before and known.placement == placement and known.evaluation.value == plan.value
        assert evaluation_of(request, placement, subgraphs, known) is known.evaluation
        assert said.call_count == before
        assert evaluation_of(request, placement, subgraphs, None) == known.evaluation
        assert said.call_count == before + 1


def test_it_needs_no_compiler_and_no_solver() -> None:
    """For every objective, in a process that has loaded neither."""
    words = [sys.executable, "-c", PROGRAM, str(BERT), repr(ASKED)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_is_useful() -> None:
    """The optimum of that instance is 236.358."""
    workload = load(BERT)
    plan = solve(workload.graph, workload.devices, time_limit=NOTHING)
    assert 236.358 <= plan.value < 1.5 * 236.358


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_it_obeys_the_rules(asked: dict[str, Any]) -> None:
    """The evaluator finds its value and no violation."""
    workload = load(BERT)
    plan = solve(workload.graph, workload.devices, time_limit=NOTHING, **asked)
    rules = {name: asked[name] for name in asked if name != "split"}
    shape: dict[str, Any] = {"execution_order": plan.execution_order} if plan.objective == "makespan" else {}
    shape |= {"subgraphs": plan.subgraphs} if plan.objective == "latency" else {}
    found = evaluate(workload.graph, workload.devices, plan.placement, **rules, **shape)
    assert found.violations == () and found.value == plan.value


def test_a_makespan_under_a_schedule_is_simulated() -> None:
    """Of the first plan at least, whatever the limit."""
    workload = load(BERT)
    asked: dict[str, Any] = {"schedule": "1f1b", "microbatches": 8}
    plan = solve(workload.graph, workload.devices, "makespan", time_limit=NOTHING, **asked)
    assert plan.stop_reason == "time_limit"
    assert 0 < plan.bound < plan.value < 1e5


@pytest.mark.parametrize(("start", "count"), [(0, 10), pytest.param(10, 140, marks=pytest.mark.slow)])
def test_constraints_levels_and_schedules_are_kept_to(start: int, count: int) -> None:
    """Most random pipelines, with everything at once, have a first plan if they have any."""
    there, first = 0, 0
    for seed in range(start, start + count):
        case = random_case(np.random.default_rng(seed), FEATURES, 7, 4)
        asked = {name: getattr(case, name) for name in RULES}
        try:
            best = solve(case.graph, case.devices, replicas=case.replicas, **asked)
        except (InfeasibleError, WorkloadError):
            continue
        plan = first_plan(case, asked)
        there += 1
        if plan is None:
            continue
        first += 1
        found = evaluate(case.graph, case.devices, plan.placement, order=plan.stages, split="chain", **asked)
        assert found.violations == () and found.value == plan.value >= plan.bound
        if not case.devices.levels:  # where methods make only pipelines that visit groups one after another
            assert plan.bound * (1 - 1e-9) <= best.value <= plan.value * (1 + 1e-9)
    assert first >= 0.7 * there > 0.2 * count


def test_memory_that_is_tight_is_packed() -> None:
    """Two devices hold 3 and 3 of sizes 2, 2, 1, 1, which no chain in that order does."""
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (1, 2), (2, 3)], 0.1, size=[2.0, 2.0, 1.0, 1.0])
    devices = Devices((DeviceKind("gpu", 2, memory=3.0),))
    plan = solve(graph, devices, split="free", time_limit=NOTHING)
    assert max(load.memory for load in plan.devices) == 3.0


def test_a_stop_event_ends_a_run_with_the_plan_at_hand() -> None:
    """Set before the run, and set while it goes on."""
    workload = load(BERT)
    stop = threading.Event()
    stop.set()
    plan = solve(workload.graph, workload.devices, stop=stop)
    assert plan.stop_reason == "interrupted"
    stop.clear()

    def listen(progress: Progress) -> None:
        stop.set()

    plan = solve(workload.graph, workload.devices, stop=stop, on_progress=listen)
    assert plan.stop_reason == "interrupted"
    plan = solve(workload.graph, workload.devices, "makespan", stop=stop, schedule="1f1b", microbatches=4)
    assert plan.stop_reason == "interrupted"


def test_a_stop_without_a_plan_is_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller asked for it, so that nothing but the lack of a plan is raised."""
    stop = threading.Event()
    stop.set()
    monkeypatch.setattr("partitioner.planning.run.find_first_plan", lambda *_: None)
    workload = load(BERT)
    stopped = patch("partitioner.methods.dp.exact.best_linear", side_effect=CompilationStopped)
    with stopped, pytest.raises(NoPlanFound, match="interrupted"):
        solve(workload.graph, workload.devices, stop=stop)


def test_progress_counts_no_further_than_its_total() -> None:
    """As "ideals 83 of 82" did."""
    workload = load(BERT)
    told: list[Progress] = []
    solve(workload.graph, workload.devices, on_progress=told.append, time_limit=600.0)
    assert told[0].phase == "first plan"
    assert any(progress.phase == "ideals" for progress in told)
    assert all(progress.done <= progress.total for progress in told if progress.total)


def test_an_exception_in_on_progress_is_passed_on() -> None:
    """It cancels the run at its first word."""

    class Enough(Exception):  # noqa: N818
        pass

    def cancel(progress: Progress) -> None:
        raise Enough

    workload = load(BERT)
    with pytest.raises(Enough):
        solve(workload.graph, workload.devices, on_progress=cancel)


def test_a_first_plan_whose_bound_is_its_value_is_optimal() -> None:
    """The critical path bounds every makespan, and on one device a path takes no longer."""
    n = 20_000
    times = np.random.default_rng(0).uniform(1, 9, n)
    path = Graph.from_arrays({"gpu": times}, [(i, i + 1) for i in range(n - 1)], 0.5)
    plan = solve(path, Devices((DeviceKind("gpu", 2),)), "makespan", time_limit=0.01)
    assert plan.status == "optimal" and plan.value == pytest.approx(times.sum())


def test_a_method_that_runs_out_of_memory_leaves_the_first_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(problem: object, settings: object) -> None:
        raise MemoryError

    monkeypatch.setattr(MethodInfo, "load_for", lambda info, problem: greedy)
    graph = Graph.from_arrays({"gpu": [1.0, 2.0, 3.0]}, [(0, 1), (1, 2)], 0.5)
    plan = solve(graph, Devices((DeviceKind("gpu", 2),)), "throughput")
    assert (plan.status, plan.stop_reason) == ("feasible", "out_of_memory")
    assert any("a smaller memory_budget" in note for note in plan.notes)
