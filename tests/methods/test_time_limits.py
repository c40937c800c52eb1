"""Within any limit there is a plan, also of large graphs, and at least as good as the chain found first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from partitioner import Devices, OptionError, Workload, solve
from partitioner.base.clock import METER, Clock
from partitioner.methods.baselines.pipedream.solve import solve_pipedream
from partitioner.methods.bounds.cover_steps import OFTEN, enumerate_ways, steps_of
from partitioner.methods.dp.linear import solve_linear
from partitioner.methods.info import MethodInfo
from partitioner.methods.ip.solve import solve_ip
from partitioner.methods.latency.path import longest_path
from partitioner.methods.latency.sequence.method import solve_sequence
from partitioner.methods.latency.serial_bound import bound_of
from partitioner.methods.method import Outcome, Settings, out_of_time
from partitioner.methods.registry import METHODS
from partitioner.planning.first_plan import find_first_plan
from partitioner.planning.objectives import THROUGHPUT
from partitioner.planning.options import read_options
from partitioner.planning.request import Request
from partitioner.planning.run_method import run_method
from partitioner.planning.solve import least_time_limit
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import PartsProblem, PipelineProblem, SampleProblem
from partitioner.workload.constraints import NONE
from partitioner.workload.resolved_constraints import demands_of
from tests.contracted import contract_to
from tests.large_graphs import SHAPES, large_graph

DEVICES = Devices.accelerated(4, cpus=1)
PAST = Settings(clock=Clock(0.0))
DP, OPTIONS = METHODS["dp"], read_options(THROUGHPUT, {})
LARGE = 20_000


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Processor time of this process that the block may take, without what compiling kernels takes."""
    before, compiled = time.process_time(), METER.seconds
    with METER.watched(lambda: None):
        yield
    assert time.process_time() - before - (METER.seconds - compiled) < seconds


@pytest.mark.parametrize(
    ("shape", "n"),
    [
        *((shape, 200) for shape in SHAPES),
        ("path", 5000),
        pytest.param("star_in", 5000, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("objective", ["throughput", "batch", "gpipe"])
def test_a_chain_is_found_even_if_all_time_is_over(shape: str, n: int, objective: str) -> None:
    options: dict[str, Any] = {"microbatches": 8} if objective == "batch" else {}
    graph = large_graph(shape, n)
    plan = solve(graph, DEVICES, objective=objective, time_limit=1e-6, **options)
    assert plan.stop_reason == "time_limit"
    assert len(plan.stages) > 1


@pytest.mark.parametrize("split", ["free", "convex"])
@pytest.mark.parametrize("shape", SHAPES)
def test_other_splits_begin_with_the_chain(shape: str, split: str) -> None:
    problem = contract_to(PartsProblem, large_graph(shape, 200), DEVICES, Goal(Measure.LARGEST_LOAD, split))
    chain = solve_linear(problem.chain, PAST).value
    found = solve_ip(problem, PAST)
    assert np.isfinite(chain)
    assert found.value <= chain * (1 + 1e-9)
    assert found.stop_reason == "time_limit"


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["star_in", "star_out", "path", "grid", "sparse"])
@pytest.mark.parametrize("split", ["chain", "free"])
def test_large_graphs_keep_the_limit(shape: str, split: str) -> None:
    """As far as that can be said of a machine that does other work: in processor time of this process."""
    solve(large_graph(shape, 100), DEVICES, split=split, time_limit=5.0)  # loads the kernels
    graph = large_graph(shape, LARGE)
    with at_most(2 * 4.0):  # two threads at most
        plan = solve(graph, DEVICES, split=split, time_limit=1.0)
    assert len(plan.placement) == len(graph)


@pytest.mark.parametrize(
    ("shape", "n", "memory"),
    [
        ("path", 3000, 1.05),
        pytest.param("path", 3000, 4.2, marks=pytest.mark.slow),
        *(
            pytest.param(shape, n, memory, marks=pytest.mark.slow)
            for shape, n in (("layered", 1500), ("complete", 200))
            for memory in (1.05, 4.2)
        ),
    ],
)
def test_latency_looks_at_the_clock(shape: str, n: int, memory: float) -> None:
    """In its bounds, sequences and search; the first bound of a path of 3,000 alone takes some seconds."""
    graph = large_graph(shape, n)
    devices = Devices.accelerated(4, cpus=1, memory=memory * n / 4)
    solve(large_graph(shape, 100), devices, objective="latency", time_limit=0.5)  # loads the kernels
    with at_most(2 * 4.0):  # two threads at most
        plan = solve(graph, devices, objective="latency", time_limit=0.5)
    assert len(plan.placement) == len(graph)


@pytest.mark.parametrize("kind", ["bounds", "sequences"])
def test_steps_of_latency_end_at_once_where_time_is_over(kind: str) -> None:
    goal = Goal(Measure.ONE_SAMPLE, "convex")
    problem = contract_to(SampleProblem, large_graph("path", 3000), DEVICES, goal)
    with at_most(1.0):
        if kind == "bounds":
            assert bound_of(problem, PAST) == longest_path(problem)
        else:
            assert solve_sequence(problem, PAST).stop_reason == "time_limit"


def test_methods_leave_time_to_evaluate_their_plan() -> None:
    """Where the first plan took a second, the method's may take 2.5 s; all but 0.6 s come off the limit."""
    graph = large_graph("path", 3)
    problem = contract(graph, DEVICES)
    request = Request(Workload(graph, DEVICES), THROUGHPUT, "chain", DP, OPTIONS, None)
    known = find_first_plan(request, problem)
    assert known is not None
    slow = replace(known, seconds=1.0)
    limits: list[float] = []

    def method(problem: Problem, settings: Settings) -> Outcome:
        limits.append(settings.clock.limit)
        return out_of_time(problem, settings, 0.0)

    with patch.object(MethodInfo, "load", return_value=method):
        for plan, limit in ((known, 60.0), (slow, 60.0), (slow, 1.8)):
            run_method(DP, problem, Settings(clock=Clock(limit)), repeat(plan).__next__)
    assert limits == pytest.approx([60.0, 58.1])  # the third has no time for a method


def test_a_limit_that_no_run_can_keep_is_refused_before_any_work() -> None:
    graph = large_graph("path", 60_000)
    with (
        at_most(0.5),
        pytest.raises(OptionError, match=r"time_limit = 0\.1: must be at least 0\.5 s for a graph of 60,000"),
    ):
        solve(graph, DEVICES, time_limit=0.1)


@pytest.mark.slow
def test_pairs_are_made_distinct_without_comparing_rows() -> None:
    """A pipeline of 400,000 edges is contracted in a second; sorting rows of pairs took six."""
    graph = large_graph("layered", LARGE)
    with at_most(6.0):
        solve(graph, DEVICES, objective="batch", time_limit=0.6, microbatches=8)


def test_limits_that_runs_can_keep_are_not_refused() -> None:
    assert least_time_limit(Measure.LAST_OPERATOR, 100_000, 300_000) <= 3.0
    assert least_time_limit(Measure.LAST_OPERATOR, 20_000, 400_000) <= 3.0
    assert least_time_limit(Measure.ONE_SAMPLE, 100_000, 300_000) <= 3.0


def counting(looks: list[float], most: int) -> Callable[[], float]:
    """Seconds that are left, which are none after so many looks."""

    def left() -> float:
        looks.append(0.0)
        return float(most - len(looks))

    return left


def test_the_covering_bound_looks_at_the_clock_while_it_lays_out_states() -> None:
    """For every supernode, and several times where it has many states."""
    problem = contract_to(PartsProblem, large_graph("star_in", 12), DEVICES, Goal(split="free"))
    looks: list[float] = []
    assert steps_of(problem, problem.nets.cost, False, counting(looks, 10)) is None
    assert len(looks) == 10 < problem.n
    steps = steps_of(problem, problem.nets.cost, False)
    assert steps is not None
    looks = []
    ways = enumerate_ways(steps, problem.work()[0], np.inf, 10**6, counting(looks, 10**6))
    assert ways is not None
    assert len(looks) == sum(-(-len(layer.after) // OFTEN) for layer in ways.layers) > problem.n
    assert enumerate_ways(steps, problem.work()[0], np.inf, 10**6, counting([], len(looks))) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "objective", "limit"),
    [("path", "throughput", 3.0), ("sparse", "throughput", 3.0), ("sparse", "makespan", 3.0)],
)
def test_graphs_of_100000_nodes_keep_the_limit(shape: str, objective: str, limit: float) -> None:
    graph = large_graph(shape, 100_000)
    solve(large_graph(shape, 100), DEVICES, objective=objective, time_limit=5.0)  # loads the kernels
    with at_most(3 * (limit + 1.0)):
        plan = solve(graph, DEVICES, objective=objective, time_limit=limit)
    assert len(plan.placement) == len(graph)


@pytest.mark.slow
def test_the_makespan_of_a_long_pipeline_keeps_the_limit() -> None:
    """It once computed which of 20,000 supernodes come before which, for half a minute."""
    asked: dict[str, Any] = {"objective": "makespan", "schedule": "inference", "microbatches": 8}
    solve(large_graph("path", 100), DEVICES, time_limit=5.0, **asked)  # loads the kernels
    graph = large_graph("path", 20_000)
    with at_most(3 * 4.0):
        plan = solve(graph, DEVICES, time_limit=3.0, **asked)
    assert len(plan.placement) == len(graph)


def test_pipedreams_planner_ends_when_the_time_is_over() -> None:
    graph, devices = large_graph("path", 1000), Devices.accelerated(4)
    goal = Goal(demands=demands_of(graph, devices, NONE))
    found = solve_pipedream(contract_to(PipelineProblem, graph, devices, goal), PAST)
    assert found.parts is None
    assert any("did not end within the time limit" in note for note in found.notes)
