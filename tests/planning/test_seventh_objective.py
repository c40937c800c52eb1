"""An objective of another package, the least sum of squared loads, and its method work in every verb."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner
from partitioner import Devices, Graph, OptionError, Plan, certify, compare_methods, load_plan, solve
from partitioner.cli.command_line import main
from partitioner.extensions import (
    Evaluation,
    Measure,
    MethodInfo,
    Objective,
    Outcome,
    Part,
    Problem,
    Settings,
    Solution,
    Terms,
    obeys,
    part_loads,
    register_objective,
    registered,
    unregister,
)
from partitioner.methods.method import Progress
from partitioner.testing import check_method
from tests.instances import document, write

NAME = "sum_of_squares"
TIMES, COST = (3.0, 1.0, 2.0, 0.5, 4.0), 0.5
EDGES = ((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))
DEVICES = Devices.accelerated(3)


def evaluate_squares(graph: Graph, devices: Devices, solution: Solution, terms: Terms) -> Evaluation:
    given: dict[str, Any] = {"constraints": terms.constraints, "split": terms.split}
    found = partitioner.evaluate(graph, devices, solution, "throughput", **given)
    return replace(found, objective=NAME, value=sum(load.load**2 for load in found.loads))


def descend(problem: Problem, settings: Settings) -> Outcome:
    """The best of some random placements after moves of one supernode each, as long as they help."""
    rng = np.random.default_rng(settings.seed)
    kinds = np.repeat(np.arange(len(problem.count)), problem.count)
    best: tuple[float, list[Part] | None] = (np.inf, None)
    for _ in range(8):
        place = rng.integers(len(kinds), size=problem.n)
        now = plan_value(problem, kinds, place)
        for v, d in [*product(range(problem.n), range(len(kinds)))] * 3:
            moved = np.where(np.arange(problem.n) == v, d, place)
            if settings.expired:
                break
            if (then := plan_value(problem, kinds, moved))[0] < now[0]:
                place, now = moved, then
        best = min(best, now, key=lambda found: found[0])
        settings.report_progress("descent", 0, 0, best[0], 0.0)
    return Outcome(problem, best[1], best[0], 0.0, settings.ended(0.0, best[0]))


def plan_value(problem: Problem, kinds: Any, place: Any) -> tuple[float, list[Part] | None]:
    parts = [Part(int(kinds[d]), np.flatnonzero(place == d)) for d in np.unique(place)]
    value = float((part_loads(problem, parts) ** 2).sum()) if obeys(problem, parts) else np.inf
    return (value, parts) if np.isfinite(value) else (np.inf, None)


SQUARES = Objective(NAME, Measure.OTHER, ("free",), ("transfer_factor",), "descent", evaluate_squares)
DESCENT = MethodInfo(
    "descent", descend, (NAME,), ("free",), ("numpy",), "best single moves from random starts", may_miss=True
)


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    with registered(SQUARES, DESCENT):
        yield


def small_graph(times: tuple[float, ...] = TIMES) -> Graph:
    return Graph.from_arrays({"accelerator": list(times)}, EDGES, cost=COST)


def least_by_hand(times: tuple[float, ...]) -> float:
    """The least sum over all placements, from the definition of a load: times, tensors in, tensors out."""
    sums = []
    for place in product(range(3), repeat=len(times)):
        load = [0.0, 0.0, 0.0]
        for node, time in enumerate(times):
            load[place[node]] += time
            away = {place[v] for u, v in EDGES if u == node} - {place[node]}
            load[place[node]] += COST * bool(away)
            for device in away:
                load[device] += COST
        sums.append(sum(each * each for each in load))
    return min(sums)


def solved(**options: Any) -> Plan:
    return solve(small_graph(), DEVICES, NAME, **options)


@pytest.mark.parametrize("seed", range(10))
def test_the_plan_has_the_least_value_of_all_placements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = tuple(rng.choice([0.0, 0.5, 1.0, 2.0, 5.0], 5).tolist())
    plan = solve(small_graph(times), DEVICES, NAME)
    assert plan.value == pytest.approx(least_by_hand(times), rel=1e-12)
    assert (plan.objective, plan.method, plan.split, plan.bound) == (NAME, "descent", "free", 0.0)


def test_the_value_is_the_evaluators() -> None:
    plan = solved()
    assert plan.value == sum(load.load**2 for load in plan.devices)
    assert partitioner.evaluate(small_graph(), DEVICES, plan.placement, NAME).value == plan.value
    assert partitioner.evaluate(small_graph(), None, plan).value == plan.value


def test_a_claim_that_the_evaluator_does_not_share_is_a_contradiction() -> None:
    def flattering(problem: Problem, settings: Settings) -> Outcome:
        found = descend(problem, settings)
        return replace(found, value=found.value / 2)

    flatterer = replace(DESCENT, name="flatterer", place=flattering)
    with registered(flatterer), pytest.raises(partitioner.ContradictionError, match="the evaluator finds"):
        solved(method="flatterer")


def test_a_plan_file_keeps_it(tmp_path: Path) -> None:
    plan = solved()
    plan.save(tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded == plan and loaded.objective == NAME
    assert partitioner.evaluate(small_graph(), None, loaded).value == plan.value


def test_certify_compares_with_the_best_plan() -> None:
    certificate = certify(small_graph(), DEVICES, dict.fromkeys(range(5), "accelerator0"), NAME)
    assert certificate.value == sum(TIMES) ** 2
    assert certificate.best.value == pytest.approx(least_by_hand(TIMES))
    assert certificate.bound == 0.0 and "a better one is known" in certificate.summary()


def test_texts_name_it_and_give_its_value_no_unit() -> None:
    plan = solved()
    evaluation = partitioner.evaluate(small_graph(), None, plan)
    assert plan.summary().startswith(f"{NAME}, free split: {plan.value:.6g}, ")
    assert evaluation.objective == NAME and evaluation.value == plan.value
    comparison = compare_methods(small_graph(), DEVICES, NAME, time_limit=None)
    assert comparison.best is not None and comparison.best.method == "descent"
    assert comparison.summary().startswith(f"{NAME}: {plan.value:.6g} by descent (free split)")


def test_a_run_that_is_stopped_at_once_has_the_first_plan_and_no_bound() -> None:
    stop = threading.Event()
    stop.set()
    plan = solved(stop=stop)
    assert plan.stop_reason == "interrupted" and plan.bound == 0.0
    assert plan.value == partitioner.evaluate(small_graph(), None, plan).value


def test_progress_is_told() -> None:
    told: list[Progress] = []
    plan = solved(on_progress=told.append)
    assert told[-1].phase == "descent" and told[-1].value == pytest.approx(plan.value)


def test_options_that_mean_nothing_to_it_are_refused() -> None:
    with pytest.raises(OptionError, match=f"microbatches: must not be given for objective '{NAME}'"):
        partitioner.evaluate(small_graph(), DEVICES, solved().placement, NAME, microbatches=3)
    with pytest.raises(OptionError, match=f"objective '{NAME}' is not available with method dp"):
        solved(method="dp")
    with pytest.raises(OptionError, match=f"split 'chain' is not available for objective '{NAME}'"):
        solved(split="chain")


def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload, plan = write(tmp_path, document()), tmp_path / "plan.json"
    assert main(["solve", str(workload), "--objective", NAME, "--output", str(plan)]) == 0
    assert capsys.readouterr().out.startswith(f"{NAME}, free split: ")
    assert main(["evaluate", str(workload), str(plan)]) == 0
    assert capsys.readouterr().out.startswith(f"{NAME}: {load_plan(plan).value:.6g}; the placement is ")
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    assert f"S {NAME}" in " ".join(out.split())
    assert any(line.split()[:2] == ["descent", "-------S"] for line in out.splitlines())


@pytest.mark.parametrize("cases", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_its_method_passes_what_every_method_is_asked(cases: int) -> None:
    check_method(DESCENT, cases=cases)


def test_nothing_of_it_is_left_once_it_is_removed() -> None:
    plan = solved()
    unregister(SQUARES)
    try:
        with pytest.raises(OptionError, match=f"objective = '{NAME}': must be one of throughput, gpipe"):
            partitioner.evaluate(small_graph(), None, plan)
    finally:
        register_objective(SQUARES)
