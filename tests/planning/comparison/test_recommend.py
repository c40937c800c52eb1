"""Recommendations: every line is what the simulation says of its plan, and all of them fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from partitioner import (
    Alternative,
    Alternatives,
    Constraints,
    DeviceGroup,
    DeviceKind,
    Devices,
    Graph,
    GroupLink,
    OptionError,
    Plan,
    Recommendation,
    Solution,
    evaluate,
    load_plan,
    recommend,
)
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.cli.command_line import main
from partitioner.methods.virtual_stages.borders import BordersEffort
from partitioner.planning.comparison.copies import Spread, devices_of_a_copy, spreads
from partitioner.planning.comparison.recipes import Recipe
from partitioner.planning.comparison.recommended_pipeline import RecommendedPipeline, simulated_choice
from partitioner.planning.comparison.trials import LATE, PipelineTrials, Trial, least_makespan
from partitioner.schedule import simulate
from partitioner.workload.levels import Level
from partitioner.workload.workload import Workload
from tests.oracle_pipelines import atoms
from tests.oracle_virtual_stages import chains
from tests.random_virtual_stages import random_training


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of stages on several devices end by themselves, so that no test depends on the clock."""
    monkeypatch.setattr("partitioner.methods.virtual_stages.borders.EFFORT", BordersEffort(estimates=20))


def line(nodes: int = 6) -> Graph:
    """A path with backward nodes that mirror it."""
    count = 2 * nodes
    return Graph.from_arrays(
        {"gpu": [1.0 + i % 3 for i in range(count)]},
        [(i, i + 1) for i in range(count - 1)],
        0.25,
        activations=1.0,
        parameters=0.5,
        backward=[i >= nodes for i in range(count)],
        color=[min(i, count - 1 - i) for i in range(count)],
    )


def gpus(count: int = 4, memory: float | None = None) -> Devices:
    return Devices((DeviceKind("gpu", count, memory, bandwidth=4.0),))


@pytest.mark.usefixtures("short_searches")
def test_every_line_is_simulated_and_the_fastest_comes_first() -> None:
    graph, devices = line(), gpus()
    found = recommend(graph, devices, 8, schedules=["gpipe", "1f1b", "zb_h1"], time_limit=100)
    usable = [one for one in found.choices if not one.against]
    assert usable and [one.makespan for one in usable] == sorted(one.makespan for one in usable)
    assert found.best is usable[0]
    for one in usable:
        assert one.plan is not None and one.timeline is not None
        again = simulate(graph, devices, one.plan, one.recipe.schedule, 8)
        assert one.makespan == one.plan.value == again.makespan
        assert one.plan.bound <= one.makespan and again.fits.all()
    assert {one.copies for one in usable} >= {"1", "2"}


def re_simulated(found: Recommendation, graph: Graph, devices: Devices, microbatches: int) -> set[Any]:
    """Simulate every line again from its plan alone; return schedules and copies of the lines."""
    usable = [one for one in found.choices if not one.against]
    for one in usable:
        assert one.plan is not None and one.timeline is not None
        plan = one.plan.record
        again = simulate(graph, devices, plan, one.recipe.schedule, microbatches)
        assert one.makespan == one.plan.value == again.makespan and again.fits.all()
        assert one.timeline.peak_memory.tolist() == again.peak_memory.tolist()
        assert one.plan.bound <= one.makespan
        given: dict[str, Any] = {"schedule": one.recipe.planned, "microbatches": microbatches}
        judged = evaluate(graph, devices, plan, "throughput", **given)
        assert judged.feasible and judged.value == pytest.approx(again.bound)
        memory = {load.name: load.memory for load in judged.loads}
        for name, peak in zip(again.devices, again.peak_memory.tolist(), strict=True):
            assert one.recipe.planned != one.recipe.schedule or peak <= memory[name] * (1 + 1e-9)
        assert again.makespan >= (again.bound * microbatches if microbatches % 4 == 0 else 0) * (1 - 1e-9)
    return {(one.schedule, one.copies) for one in usable}


def all_schedules_have_copies(count: int, names: Sequence[str] | None) -> None:
    """With 1, 2 and, on four devices, 4 copies, which exchange weights."""
    graph, devices = line(2 * count + 4), Devices((DeviceKind("gpu", count, bandwidth=2.0),))
    found = recommend(graph, devices, 16, schedules=names, time_limit=100)
    lines = re_simulated(found, graph, devices, 16)
    expected = {one.schedule for one in found.choices if names is None or one.schedule in names}
    assert lines >= {(name, str(copies)) for name in expected for copies in (1, 2, 4) if copies <= count}
    for one in found.choices:
        if one.copies == "2" and one.timeline is not None and one.plan is not None:
            assert any(each.part == "sync" for each in one.timeline.operations())
            assert len(one.timeline.devices) == 2 * len(set(one.plan.stages)) == one.devices


@pytest.mark.usefixtures("short_searches")
def test_copies_are_simulated_with_their_exchange() -> None:
    all_schedules_have_copies(2, ["zb_h1", "zbv", "dualpipev"])


@pytest.mark.slow
@pytest.mark.usefixtures("short_searches")
def test_copies_of_every_schedule_are_simulated_with_their_exchange() -> None:
    all_schedules_have_copies(4, None)


@pytest.mark.usefixtures("short_searches")
def test_a_plan_with_copies_is_read_back(tmp_path: Path) -> None:
    graph, devices = line(12), Devices((DeviceKind("gpu", 4, bandwidth=2.0),))
    found = recommend(graph, devices, 16, schedules=["zbv"], time_limit=100)
    best = next(one for one in found.choices if one.copies == "2")
    assert best.plan is not None
    best.plan.save(tmp_path / "plan.json")
    plan = load_plan(tmp_path / "plan.json")
    assert plan.replicas == best.plan.replicas and plan.stage_of == best.plan.stage_of
    assert simulate(graph, None, plan).makespan == best.makespan


def recomputed(graph: Graph) -> Graph:
    """The graph whose nodes may drop their activations, which takes longer."""
    ways = {
        node: [Alternative("recomputed", {"gpu": float(graph.time[0, i]) * 1.5}, parameters=0.5)]
        for i, node in enumerate(graph.ids)
    }
    return replace(graph, alternatives=Alternatives(ways))


@pytest.mark.usefixtures("short_searches")
def test_recomputation_trades_time_for_memory() -> None:
    """With little memory only pipelines that recompute fit; with plenty they are no faster."""
    graph = recomputed(line())
    small, large = (
        recommend(graph, gpus(memory=m), 8, schedules=["1f1b"], time_limit=60) for m in (8.0, 99.0)
    )
    re_simulated(small, graph, gpus(memory=8.0), 8)
    assert small.best is not None and large.best is not None
    assert small.best.ways["recomputed"] > 0 and not large.best.ways
    assert small.best.makespan > large.best.makespan
    table = small.summary(80)
    assert "other ways" in table and f"{small.best.ways['recomputed']} recomputed" in table
    assert "other ways" not in large.summary(160)


def test_nothing_is_planned_after_the_time() -> None:
    found = recommend(line(), gpus(), 8, time_limit=1e-3)
    late = [one for one in found.choices if one.against == "not planned, since the time was over"]
    assert len(late) >= len(found.choices) - 2 and found.compiling >= 0
    assert "not used (not planned, since the time was over): " in found.summary(160)


@pytest.mark.parametrize(("reasons", "again"), [(("gap", "time_limit"), [1]), (("time_limit", "gap"), [0])])
def test_time_that_is_left_goes_to_what_may_become_the_best(
    reasons: tuple[str, str], again: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches that have ended are not repeated; others are, also if their plan is a slower one."""
    workload, spread = Workload(line(), gpus()), [Spread(2), Spread(1)]
    trials = [Trial(Recipe("1f1b", "1f1b"), each) for each in spread]
    plans = {trial: trial.planned(workload, 8, {"time_limit": 4.0}) for trial in trials}
    ended = dict(zip(trials, reasons, strict=True))
    asked = list[Trial]()

    def planned(run: PipelineTrials, trial: Trial, seconds: float) -> Plan:
        asked.append(trial)
        plan = plans[trial]
        assert isinstance(plan, Plan)
        return replace(plan, stop_reason=ended[trial], bound=0.0)

    monkeypatch.setattr(PipelineTrials, "_planned", planned)
    PipelineTrials(workload, 8, Constraints(), 0, Clock(60.0), Interruption(None), None).run(trials)
    assert asked == [*trials, *(trials[place] for place in again)]


@pytest.mark.parametrize(("late", "again"), [(None, ["1f1b"]), ("gpipe", ["gpipe"])])
def test_little_time_goes_to_the_fastest_or_to_those_without_a_plan(
    late: str | None, again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 60 seconds 47.6 are left after 18 and 31.5 were given, of which a quarter was used."""
    workload, trials = Workload(line(), gpus()), [Trial(Recipe(n, n), Spread(1)) for n in ("1f1b", "gpipe")]
    plans = {trial: trial.planned(workload, 8, {"time_limit": 4.0}) for trial in trials}
    clock, asked = SimpleNamespace(limit=60.0, left=60.0, expired=False), list[str]()

    def planned(run: PipelineTrials, trial: Trial, seconds: float) -> Plan | str:
        asked.append(trial.recipe.schedule)
        clock.left -= seconds / 4
        plan = plans[trial]
        assert isinstance(plan, Plan)
        return LATE if trial.recipe.schedule == late else replace(plan, stop_reason="time_limit", bound=0.0)

    monkeypatch.setattr(PipelineTrials, "_planned", planned)
    run = PipelineTrials(workload, 8, Constraints(), 0, clock, Interruption(None), None)  # type: ignore[arg-type]
    run.run(trials)
    assert asked == ["1f1b", "gpipe", *again]


def test_what_cannot_be_used_takes_no_time_from_slower_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan whose bound is above the makespan of a faster one is tried again if that one breaks a rule."""
    workload, trials = Workload(line(), gpus()), [Trial(Recipe("1f1b", "1f1b"), Spread(n)) for n in (2, 1)]
    plans = {trial: trial.planned(workload, 8, {"time_limit": 4.0}) for trial in trials}
    asked = list[Trial]()

    def planned(self: PipelineTrials, trial: Trial, seconds: float) -> Plan:
        asked.append(trial)
        plan = plans[trial]
        assert isinstance(plan, Plan)
        return replace(plan, stop_reason="time_limit")

    def chosen(broken: str, *given: Any) -> RecommendedPipeline:
        found = simulated_choice(*given)
        assert found.plan is not None
        slow = found.makespan > fast
        plan = replace(found.plan, bound=(fast + found.makespan) / 2 if slow else 0.0)
        return replace(found, plan=plan, against="" if slow else broken)

    monkeypatch.setattr(PipelineTrials, "_planned", planned)
    choices = PipelineTrials(workload, 8, Constraints(), 0, Clock(60.0), Interruption(None), None).run(trials)
    fast, slow = sorted(one.makespan for one in choices)
    slower = [trial for trial, one in zip(trials, choices, strict=True) if one.makespan == slow]
    faster = [trial for trial in trials if trial not in slower]
    assert fast < slow
    for broken, again in (("", faster), ("a rule", slower)):
        monkeypatch.setattr(
            "partitioner.planning.comparison.trials.simulated_choice", partial(chosen, broken)
        )
        asked.clear()
        PipelineTrials(workload, 8, Constraints(), 0, Clock(60.0), Interruption(None), None).run(trials)
        assert asked == [*trials, *again]


def test_an_interrupted_call_says_what_is_not_planned() -> None:
    stop = Event()
    stop.set()
    found = recommend(line(), gpus(), 8, stop=stop, time_limit=4)
    assert found.best is None and {one.against for one in found.choices} == {
        "not planned, since the run was interrupted"
    }


def test_explicit_groups_are_divided_among_copies() -> None:
    groups = (DeviceGroup("left", {"gpu": 2}), DeviceGroup("right", {"gpu": 2}))
    links = (GroupLink(slowdown=4.0),)
    devices = Devices((DeviceKind("gpu", 4, bandwidth=4.0),), groups=groups, links=links)
    assert list(spreads(devices, 8)) == [Spread(2), Spread(1), Spread(1, 4)]
    share = devices_of_a_copy(devices, 2)
    assert share.names == ("gpu0", "gpu1") and [group.size("gpu") for group in share.groups] == [1, 1]


def test_no_pipeline_is_faster_than_the_bound() -> None:
    """The longest path, of whose backward part schedules with halves wait for half, and all work divided."""
    graph = line()
    whole, backward, devices = float(graph.time.sum()), float(graph.time[0, 6:].sum()), gpus()
    assert least_makespan(graph, devices, 1) == whole
    assert least_makespan(graph, devices, 1, 0.5) == whole - backward / 2
    assert least_makespan(graph, devices, 100) == 25 * whole
    assert least_makespan(recomputed(graph), devices, 100) == 25 * whole


@pytest.mark.parametrize("seed", range(8))
def test_no_stages_are_faster_than_the_bound_by_loads(seed: int) -> None:
    """Every chain of at most three stages on devices of two kinds, with memory by part and without."""
    rng = np.random.default_rng(seed)
    drawn = (random_training(rng, 5, path=True, memory=seed % 2 == 0) for _ in range(100))
    graph = next(graph for graph in drawn if graph.backward.any())
    graph = replace(
        graph,
        kinds=("gpu", "cpu"),
        time=np.vstack([graph.time[0], 3 * graph.time[0]]),
        allowed=np.vstack([graph.allowed[0]] * 2),
    )
    devices = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1)))
    trial = Trial(Recipe("zb_h1", "1f1b"), Spread(1))
    assert trial.bounded_by_load
    least = trial.least_by_load(Workload(graph, devices), 5, {"time_limit": 60})
    found = []
    for count in (1, 2, 3):
        for stage in chains(graph, atoms(graph, Constraints()), count):
            for order in permutations(devices.names, count):
                placement = dict(zip(graph.ids, [order[i] for i in stage], strict=True))
                plan = Solution(placement, order=order)
                found.append(simulate(graph, devices, plan, "zb_h1", 5).makespan)
    assert 0 < least <= min(found) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_pipeline_of_a_line_is_faster_than_its_bound(seed: int, short_searches: None) -> None:
    """Every chain on a GPU and a host, whichever of the plans made for two schedules is the best."""
    rng = np.random.default_rng(seed)
    drawn = (random_training(rng, 5, path=bool(seed % 2), memory=False) for _ in range(100))
    graph = next(graph for graph in drawn if graph.backward.any())
    host = DeviceKind("host", 1, times="gpu", time_factor=1.5, pays_communication=False)
    devices = Devices((DeviceKind("gpu", 1), host))
    choices = recommend(graph, devices, 5, schedules=["zb_h1"], time_limit=3).choices
    found = []
    for count in (1, 2):
        for stage in chains(graph, atoms(graph, Constraints()), count):
            for order in permutations(devices.names, count):
                placement = dict(zip(graph.ids, [order[i] for i in stage], strict=True))
                found.append(simulate(graph, devices, Solution(placement, order=order), "zb_h1", 5).makespan)
    best = next(one for one in choices if one.copies == "1")
    assert best.plan is not None
    assert 0 < best.plan.bound <= min(found) * (1 + 1e-9) and best.makespan <= 1.02 * min(found)


def test_the_trade_has_no_line_that_another_one_beats() -> None:
    found = recommend(line(), gpus(), 8, schedules=["gpipe", "1f1b"], time_limit=4)
    for one in found.trade:
        assert not any(
            other.makespan <= one.makespan and other.full < one.full
            for other in found.choices
            if not other.against
        )


def test_what_does_not_fit_is_named_with_the_reason() -> None:
    found = recommend(line(), gpus(memory=22.0), 8, schedules=["gpipe", "1f1b"], time_limit=4)
    against = [one for one in found.choices if one.against]
    assert {one.schedule for one in against} >= {"gpipe"}
    reason = "not used (no stages fit the memory and the constraints): gpipe x"
    assert reason in found.summary(80) and reason in found.summary(160)
    nothing = recommend(line(), gpus(memory=3.0), 8, schedules=["gpipe"], time_limit=2)
    assert nothing.best is None and "no pipeline can be used" in nothing.summary()


def test_constraints_hold_for_every_line() -> None:
    two = Constraints(stages=2)
    found = recommend(line(), gpus(), 4, schedules=["1f1b"], constraints=two, time_limit=3)
    for one in found.choices:
        assert one.against or (one.plan is not None and len(one.plan.stages) == 2)


def test_copies_are_powers_of_two_that_divide_the_groups() -> None:
    assert list(spreads(gpus(6), 32)) == [Spread(4), Spread(2), Spread(1), Spread(1, 6)]
    assert list(spreads(gpus(8), 3)) == [Spread(2), Spread(1), Spread(1, 3)]
    servers = Devices((DeviceKind("gpu", 6),), levels=(Level("server", {"gpu": 3}, 4.0),))
    assert list(spreads(servers, 32)) == [Spread(1), Spread(1, 6)]


@pytest.mark.parametrize(
    ("microbatches", "schedules", "message"),
    [
        (0, None, "microbatches = 0: must be an integer of at least 1"),
        (4, ["inference"], "schedules = 'inference': must be"),
        (4, ["waltz"], "schedules = 'waltz': must be"),
    ],
)
def test_what_cannot_be_asked(microbatches: int, schedules: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        recommend(line(), gpus(), microbatches, schedules=schedules)


def test_the_command_line_writes_the_fastest_plan(workload_file: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "plan.json"
    words = ["recommend", str(workload_file), "--microbatches", "4", "--schedules", "1f1b,gpipe"]
    assert main([*words, "--time-limit", "2", "--output", str(path)]) == 0
    assert "is the fastest" in capsys.readouterr().out
    assert main([*words, "--time-limit", "2", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    best = record["choices"][0]
    assert load_plan(path).value == pytest.approx(best["makespan"], rel=0.2)
    assert main(["simulate", str(workload_file), str(path)]) == 0


def test_frameworks_with_equal_replicas_leave_out_the_others(short_searches: None) -> None:
    """A layer that takes twice as long as the other gets two of three devices, where stages may differ."""
    graph = Graph.from_arrays(
        {"gpu": [2.0, 1.0, 1.0, 2.0]},
        [(0, 1), (1, 2), (2, 3)],
        backward=[False, False, True, True],
        color=[0, 1, 1, 0],
        parameters=[1.0, 1.0, 0.0, 0.0],
    )
    devices = Devices((DeviceKind("gpu", 3, memory=1.5),))
    sizes = {
        equal: {
            tuple(1 + len(one.plan.replicas.get(name, ())) for name in one.plan.stages)
            for one in recommend(graph, devices, 6, schedules=["1f1b"], equal_replicas=equal).choices
            if one.plan is not None
        }
        for equal in (False, True)
    }
    assert (2, 1) in sizes[False] and sizes[True]
    assert all(len(set(each)) == 1 for each in sizes[True])
    with pytest.raises(OptionError, match="equal_replicas = 2: must be True or False"):
        recommend(line(), devices, 4, equal_replicas=2)  # type: ignore[arg-type]
