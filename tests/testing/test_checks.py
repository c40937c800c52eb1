"""The checks let every method of this package pass, and find each thing that a method can do wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from partitioner import BackendUnavailable, OptionError, solve
from partitioner.extensions import ChainProblem, MethodInfo, Outcome, Part, Problem, Settings, registered
from partitioner.methods.dp.exact import solve_exact
from partitioner.methods.method import no_split
from partitioner.methods.registry import METHODS
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.testing import (
    LateEnd,
    MethodFailure,
    MissingPlan,
    NotRepeatable,
    UnexpectedFailure,
    WrongBound,
    WrongInfeasibility,
    WrongPlan,
    check_endings,
    check_method,
    check_plans,
    checks,
)
from partitioner.testing.checks import large_workload

QUICK = 3  # cases
FOR_QUICK = ("dp", "ip", "local_search", "single_device")  # others are checked with the slow tests
ALONE = {name: info for name, info in METHODS.items() if not info.needs}  # of what the cases ask for
PAIRS = [(name, objective) for name, info in ALONE.items() for objective in info.objectives]
STEP = 0.01


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs may take half a second to end."""
    monkeypatch.setattr(checks, "GRACE", 0.5)


@pytest.mark.parametrize(
    "name",
    [name if name in FOR_QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ALONE],
)
def test_every_method_passes_a_few_cases(name: str) -> None:
    try:
        check_plans(name, METHODS[name].objectives[:1], cases=QUICK, seed=1)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "objective"), PAIRS)
def test_every_method_passes_for_every_objective(name: str, objective: str) -> None:
    try:
        check_method(name, [objective], cases=40)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_integer_programs_pass_with_every_backend(backend: str) -> None:
    try:
        check_plans("ip", ["throughput"], cases=10, seed=3, backend=backend)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ["local_search", pytest.param("dp", marks=pytest.mark.slow)])
def test_runs_that_take_some_time_end_when_they_should(name: str) -> None:
    check_endings(name, ["throughput"])


def named(place: Callable[[Any, Settings], Outcome], may_miss: bool = False) -> MethodInfo:
    return MethodInfo("checked", place, ("throughput",), ("chain",), ("numpy",), "none", may_miss=may_miss)


def claims_too_good_a_bound(problem: ChainProblem, settings: Settings) -> Outcome:
    return replace(solve_worst(problem, settings), bound=np.inf, stop_reason="optimal")


def claims_another_value(problem: ChainProblem, settings: Settings) -> Outcome:
    found = solve_exact(problem, settings)
    return replace(found, value=found.value / 2, bound=0.0)


def claims_a_proof_that_there_is_none(problem: Problem, settings: Settings) -> Outcome:
    return no_split(problem)


def finds_nothing(problem: Problem, settings: Settings) -> Outcome:
    return Outcome(problem, None, np.inf, 0.0, "heuristic")


def divides_by_zero(problem: Problem, settings: Settings) -> Outcome:
    return Outcome(problem, None, 1 / 0, 0.0, "heuristic")


def breaks_limits_of_memory(problem: ChainProblem, settings: Settings) -> Outcome:
    return solve_exact(replace(problem, memory=np.full_like(problem.memory, np.inf)), settings)


CALLS = count()


def takes_turns(problem: ChainProblem, settings: Settings) -> Outcome:
    """Every second call finds the best plan, the others the worst of those on one device."""
    return (solve_exact if next(CALLS) % 2 else solve_worst)(problem, settings)


def solve_worst(problem: ChainProblem, settings: Settings) -> Outcome:
    """Everything on the slowest device that can hold it; else the best plan."""
    everything = np.arange(problem.n)
    work = problem.work().sum(axis=1)
    fits = np.isfinite(work) & (problem.size.sum() <= problem.memory) & (problem.count > 0)
    if not fits.any():
        return replace(solve_exact(problem, settings), bound=0.0, stop_reason="heuristic")
    kind = int(np.argmax(np.where(fits, work, -np.inf)))
    return Outcome(problem, [Part(kind, everything)], float(work[kind]), 0.0, "heuristic")


@pytest.mark.parametrize(
    ("place", "failure"),
    [
        (claims_too_good_a_bound, WrongPlan),
        (claims_another_value, WrongPlan),
        (breaks_limits_of_memory, WrongPlan),
        (claims_a_proof_that_there_is_none, WrongInfeasibility),
        (finds_nothing, MissingPlan),
        (divides_by_zero, UnexpectedFailure),
        (takes_turns, NotRepeatable),
    ],
)
def test_what_a_method_does_wrong_is_found(
    place: Callable[[Any, Settings], Outcome], failure: type[MethodFailure]
) -> None:
    with pytest.raises(failure, match=r"method checked, objective throughput, chain split: "):
        check_plans(named(place), cases=30)


def test_a_bound_that_the_value_does_not_contradict_is_found_by_the_oracle() -> None:
    def place(problem: ChainProblem, settings: Settings) -> Outcome:
        found = solve_worst(problem, settings)
        return replace(found, bound=found.value, stop_reason="optimal")

    with pytest.raises(WrongBound, match=r"the bound .* is above the least value"):
        check_plans(named(place), cases=30)


def test_a_method_that_never_finds_a_plan_fails_whatever_its_record_says() -> None:
    with pytest.raises(MissingPlan, match=r"no plan in any of \d+ cases"):
        check_plans(named(finds_nothing, may_miss=True), cases=30)


@pytest.mark.usefixtures("impatient")
def test_a_method_that_does_not_look_at_the_clock_ends_late() -> None:
    def place(problem: Problem, settings: Settings) -> Outcome:
        for _ in range(120):
            time.sleep(STEP)
        return finds_nothing(problem, settings)

    with pytest.raises(LateEnd, match=r"in spite of the time limit of 0.5 s the run took \d.\d s"):
        check_endings(named(place, may_miss=True))


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_method_that_looks_at_the_deadline_alone_does_not_heed_the_event() -> None:
    def place(problem: Problem, settings: Settings) -> Outcome:
        steps = 0
        while steps < 120 and (settings.deadline is None or time.perf_counter() < settings.deadline):
            time.sleep(STEP)
            steps += 1
        return finds_nothing(problem, settings)

    with pytest.raises(LateEnd, match=r"in spite of the event that was set after 0.5 s"):
        check_endings(named(place, may_miss=True))


def test_the_last_line_of_a_failure_reproduces_it() -> None:
    with registered(named(breaks_limits_of_memory)):
        with pytest.raises(WrongPlan) as caught:
            check_plans("checked", cases=30)
        line = str(caught.value).splitlines()[-1]
        call = re.fullmatch(
            r"reproduce it with partitioner\.testing\.(check_plans\('checked', \['throughput'\], .*\))", line
        )
        assert call is not None and "cases=1" in line
        with pytest.raises(WrongPlan) as again:
            eval(call[1])
    assert str(again.value) == str(caught.value)


def test_a_record_is_registered_only_for_the_check() -> None:
    check_plans(named(solve_exact), cases=2)
    assert "checked" not in METHODS
    with pytest.raises(OptionError, match="method = 'checked': must be one of dp"):
        check_plans("checked", cases=2)


def test_the_large_workload_has_a_plan() -> None:
    graph, devices = large_workload(0)
    assert solve(graph, devices, time_limit=2.0).value > 0
