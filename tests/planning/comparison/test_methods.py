"""A comparison runs what suits, ranks plans by value, shares bounds where they hold, hides no failure."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import partitioner.planning.comparison.runs
from partitioner import (
    BackendUnavailable,
    ContradictionError,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    MethodComparison,
    NoPlanFound,
    OptionError,
    PartitionerError,
    Placer,
    Plan,
    Progress,
    WorkloadError,
    compare_methods,
    solve,
)
from partitioner.evaluation.loads import DeviceLoad
from partitioner.methods.catalogue import USERS_OWN
from partitioner.methods.registry import METHODS
from tests.oracle import best_chain_value
from tests.random_workloads import uneven_workload

QUICK = ("dp", "dpl", "pipedream_path", "local_search_baseline", "single_device")
WHOLE = {"method", "split", "seconds"}
PLAN = {
    "value",
    "bound",
    "gap",
    "own_bound",
    "stop_reason",
    "backend",
    "fullest_device",
    "memory",
    "memory_limit",
}


def diamond() -> Graph:
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    return Graph.from_arrays({"gpu": [1.0, 2.0, 3.0, 1.0]}, edges, cost=0.5, size=[1.0, 2.0, 2.0, 1.0])


def gpus(count: int = 2, memory: float | None = None) -> Devices:
    return Devices((DeviceKind("gpu", count, memory),))


def plan(value: float, bound: float, stop_reason: str = "heuristic") -> Plan:
    """A plan with nothing in it that a comparison does not look at."""
    load = DeviceLoad("gpu0", "gpu", value, (value, 0.0), (0.0, 0.0), (0.0, 0.0), 1.0, 4.0, 1)
    fields = {
        "value": value,
        "bound": bound,
        "stop_reason": stop_reason,
        "devices": (load,),
        "backend": "numba",
    }
    return cast(Plan, SimpleNamespace(**fields))


def faked(
    monkeypatch: pytest.MonkeyPatch, answers: dict[tuple[str, str], Plan | BaseException], **options: Any
) -> MethodComparison:
    """The comparison where methods answer so; those not named are left out."""

    def answer(*_: Any, method: str, split: str, **__: Any) -> Plan:
        found = answers[method, split]
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(partitioner.planning.comparison.runs, "solve", answer)
    methods = list(dict.fromkeys(method for method, _ in answers))
    return compare_methods(diamond(), gpus(), methods=methods, **options)


def test_all_that_suits_is_run_by_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of chains on chains, one that places operators on free splits, any other on all its splits."""
    monkeypatch.setattr(partitioner.planning.comparison.runs, "solve", lambda *_, **__: plan(1.0, 1.0))
    for objective in ("throughput", "gpipe", "latency", "makespan"):
        found = {(one.method, one.split) for one in compare_methods(diamond(), gpus(), objective).compared}
        able = {
            name: info
            for name, info in METHODS.items()
            if not {"alternatives", *info.needs} & {*info.features}
        }
        suited = {name for name, info in able.items() if objective in info.objectives} - {USERS_OWN}
        if objective == "makespan":
            suited = {name for name in suited if "free" in METHODS[name].splits}
        assert {name for name, _ in found} == suited
        assert all(split in METHODS[name].splits for name, split in found)
        if objective == "latency":
            assert {split for _, split in found} == {"convex"}
    own = compare_methods(diamond(), gpus(), "makespan", placer=Placer()).compared
    assert USERS_OWN in {one.method for one in own}
    throughput = {(one.method, one.split) for one in compare_methods(diamond(), gpus()).compared}
    assert throughput >= {("dp", "chain"), ("ip", "convex"), ("ip", "free"), ("scotch", "free")}
    assert ("single_device", "free") not in throughput
    only = compare_methods(diamond(), gpus(), split="free").compared
    assert {one.split for one in only} == {"free"} and "single_device" in {one.method for one in only}


def test_the_best_comes_first_and_the_plans_are_those_of_solve() -> None:
    for objective, methods in (("throughput", QUICK), ("latency", ("greedy", "latency_dp", "max_load"))):
        found = compare_methods(diamond(), gpus(), objective, methods=methods)
        values = [one.value for one in found.compared]
        assert values == sorted(values) and {one.method for one in found.compared} == set(methods)
        assert found.best is found.compared[0]
        for one in found.compared:
            assert one.value == solve(diamond(), gpus(), objective, method=one.method, split=one.split).value


def test_the_gap_is_for_all_and_the_backend_for_those_that_run_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, tuple[str, float]] = {}

    def answer(*_: Any, method: str, backend: str, gap: float, **__: Any) -> Plan:
        asked[method] = (backend, gap)
        return plan(1.0, 1.0)

    monkeypatch.setattr(partitioner.planning.comparison.runs, "solve", answer)
    compare_methods(diamond(), gpus(), methods=["dp", "ip"], backend="scip", gap=0.25)
    assert asked == {"dp": ("auto", 0.25), "ip": ("scip", 0.25)}
    with pytest.raises(BackendUnavailable, match=r"backend = 'scipp': no method .* mean 'scip'"):
        compare_methods(diamond(), gpus(), methods=["dp", "ip"], backend="scipp")


@pytest.mark.parametrize(("first", "count"), [(94_000, 8), pytest.param(94_008, 22, marks=pytest.mark.slow)])
def test_bounds_hold_for_the_optimum_of_their_split(first: int, count: int) -> None:
    """Against exhaustive search, and against every plan of the split or of a stricter one."""
    chains = 0
    for seed in range(first, first + count):
        graph, devices = uneven_workload(np.random.default_rng(seed), 7, 3)
        try:
            found = compare_methods(graph, devices, methods=QUICK, time_limit=None)
        except WorkloadError:
            continue
        assert found.contradictions == ()
        best = best_chain_value(graph, devices)
        assert found.bounds["free"] <= found.bounds["chain"]
        for one in found.compared:
            if one.plan is not None:
                assert found.bounds[one.split] <= one.value * (1 + 1e-9)
                assert found.gap(one) >= -1e-9
        if best is not None:
            assert found.bounds["chain"] <= best * (1 + 1e-9)
            chains += 1
    assert chains > count // 3


def test_a_bound_holds_for_stricter_splits_only(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[tuple[str, str], Plan | BaseException] = {
        ("dp", "chain"): plan(10.0, 9.0),
        ("ip", "convex"): plan(8.0, 7.0),
        ("ip", "free"): plan(6.0, 5.0),
    }
    found = faked(monkeypatch, answers)
    assert found.bounds == {"chain": 9.0, "convex": 7.0, "free": 5.0}
    assert [found.gap(one) for one in found.compared] == [1 / 6, 1 / 8, 1 / 10]
    found = faked(monkeypatch, answers | {("ip", "free"): plan(9.5, 9.5), ("ip", "convex"): plan(9.8, 1.0)})
    assert found.bounds == {"chain": 9.5, "convex": 9.5, "free": 9.5}
    assert [one.value for one in found.compared] == [9.5, 9.8, 10.0] and found.contradictions == ()
    both = {
        ("dp", "chain"): plan(10.0, 1.0),
        ("ip", "convex"): plan(11.0, 9.0),
        ("ip", "free"): plan(8.0, 2.0),
    }
    assert faked(monkeypatch, {**both}).bounds["chain"] == 9.0
    assert faked(monkeypatch, {**both}, contiguous_backward=True).bounds["chain"] == 2.0


def test_what_has_no_plan_comes_last_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = faked(
        monkeypatch,
        {
            ("dp", "chain"): InfeasibleError("memory is too small"),
            ("dpl", "chain"): NoPlanFound("no plan found (time_limit)"),
            ("scotch", "free"): BackendUnavailable("method scotch needs a program"),
            ("metis", "free"): ContradictionError("the method claims 1.0, the evaluator finds 2.0"),
            ("pipeline", "chain"): OptionError("means nothing"),
            ("single_device", "chain"): plan(3.0, 1.0),
        },
    )
    against = [(one.method, one.against) for one in found.compared]
    assert against[0] == ("single_device", "")
    assert dict(against[1:]) == {
        "dp": "infeasible",
        "dpl": "no plan",
        "scotch": "cannot run",
        "metis": "bug",
        "pipeline": "cannot run",
    }
    text = found.summary(160)
    for words in (
        "dp, chain: infeasible: memory is too small",
        "dpl, chain: no plan found (time_limit)",
        "scotch, free: cannot run: method scotch needs a program",
        "CONTRADICTION, please report: metis, free split: the method claims 1.0, the evaluator finds 2.0",
    ):
        assert words in text.splitlines()


def test_a_bound_above_a_value_is_shown_as_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    found = faked(
        monkeypatch,
        {("dp", "chain"): plan(5.0, 3.0), ("ip", "convex"): plan(7.0, 6.0), ("ip", "free"): plan(7.0, 1.0)},
    )
    assert len(found.contradictions) == 1 and "dp found 5.0, below a bound of 6.0" in found.contradictions[0]
    assert "CONTRADICTION" in found.summary(80)


def test_what_a_method_cannot_do_is_told_if_it_was_named() -> None:
    found = compare_methods(diamond(), gpus(), "latency", methods=["dp", "greedy"])
    assert [one.method for one in found.compared] == ["greedy", "dp"]
    assert "objective 'latency' is not available with method dp" in found.compared[1].reason
    found = compare_methods(diamond(), gpus(), split="free", methods=["dp"])
    assert found.best is None and "split 'free' is not available" in found.compared[0].reason
    assert found.summary(80).startswith("throughput: no method found a plan")


def test_a_missing_program_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = compare_methods(diamond(), gpus(), methods=["scotch", "single_device"])
    assert [(one.method, one.against) for one in found.compared][1] == ("scotch", "cannot run")
    assert "apt-get install scotch" in found.compared[1].reason


def test_no_plan_fits() -> None:
    found = compare_methods(diamond(), gpus(2, 2.0), methods=["dp", "single_device"])
    assert found.best is None and {one.against for one in found.compared} == {"infeasible"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["dp", "magic"]}, "method = 'magic': must be one of dp"),
        ({"methods": []}, "no method is named; choose from dp"),
        ({"split": "round"}, "split = 'round': must be one of"),
        ({"objective": "beauty"}, "objective = 'beauty': must be one of"),
        ({"objective": "latency", "split": "chain"}, "no method makes chain splits for objective 'latency'"),
        ({"time_limit": 0}, "time_limit = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"taste": 1}, "option 'taste' is unknown"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compare_methods(diamond(), gpus(), **options)


def test_progress_names_the_method() -> None:
    heard: list[Progress] = []
    compare_methods(
        diamond(), gpus(), methods=["single_device", "local_search_baseline"], on_progress=heard.append
    )
    phases = [progress.phase for progress in heard]
    assert phases[0] == "1 of 2, single_device (chain): starting"
    assert "2 of 2, local_search_baseline (free): local search" in phases


def test_an_interruption_ends_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what there is; without any plan it is an interruption of the call."""
    stopped: dict[tuple[str, str], Plan | BaseException] = {
        ("dp", "chain"): plan(2.0, 1.0),
        ("dpl", "chain"): plan(3.0, 1.0, "interrupted"),
        ("pipeline", "chain"): AssertionError("must not run"),
    }
    found = faked(monkeypatch, stopped)
    assert [(one.method, one.against) for one in found.compared][2] == ("pipeline", "not run")
    with pytest.raises(KeyboardInterrupt):
        faked(monkeypatch, {("dp", "chain"): KeyboardInterrupt(), ("dpl", "chain"): AssertionError()})


def test_json_is_one_object_with_all_fields() -> None:
    found = compare_methods(diamond(), gpus(2, 5.0), methods=[*QUICK, "latency_dp"])
    record = json.loads(found.to_json(), parse_constant=_refuse)
    assert set(record) == {"objective", "time_limit", "seed", "bounds", "contradictions", "methods"}
    assert set(record["bounds"]) == {"chain", "free"} and record["contradictions"] == []
    plans = [row for row in record["methods"] if "value" in row]
    others = [row for row in record["methods"] if "value" not in row]
    assert all(set(row) == WHOLE | PLAN for row in plans) and len(plans) == 4
    assert all(set(row) == WHOLE | {"against", "reason"} for row in others)
    assert {row["method"]: row["against"] for row in others} == {
        "single_device": "no plan",
        "latency_dp": "cannot run",
    }
    assert plans[0]["memory"] <= plans[0]["memory_limit"] == pytest.approx(5.0)


def _refuse(name: str) -> None:
    raise AssertionError(name)


@pytest.mark.parametrize("memory", [None, 7.0])
@pytest.mark.parametrize("width", [80, 160])
def test_the_table_keeps_to_its_width(memory: float | None, width: int) -> None:
    found = compare_methods(diamond(), gpus(2, memory), methods=QUICK)
    lines = found.summary(width).splitlines()
    assert max(map(len, lines)) <= width
    titles = next(line for line in lines if line.startswith("method"))
    assert titles.split()[:8] == ["method", "split", "value", "gap", "bound", "seconds", "memory", "full"]
    assert len([line for line in lines if line.split()[0] in QUICK]) == len(QUICK)


def test_the_fullest_device_is_the_one_nearest_to_its_limit() -> None:
    kinds = (DeviceKind("gpu", 1, 100.0), DeviceKind("npu", 1, 4.0))
    graph = Graph.from_arrays({"gpu": [1.0, 9.0], "npu": [9.0, 1.0]}, [(0, 1)], cost=0.0, size=[10.0, 2.0])
    (one,) = compare_methods(graph, Devices(kinds), methods=["dp"]).compared
    assert one.fullest is not None and (one.fullest.name, one.fullest.memory) == ("npu0", 2.0)
    (free,) = compare_methods(graph, Devices((DeviceKind("gpu", 1),)), methods=["dp"]).compared
    assert free.fullest is not None and free.fullest.memory == 12.0
    assert math.isfinite(free.value)


def test_the_most_samples_come_first_and_bounds_are_upper_ones() -> None:
    graph = Graph.from_arrays(
        {"gpu": [3.0, 1.0, 2.0, 4.0]},
        [(0, 1), (1, 2), (2, 3)],
        cost=0.5,
        size=2.0,
        cache=[1.0, 1.0, 1.0, 0.0],
    )
    devices = Devices((DeviceKind("gpu", 2, memory=12.0),))
    names = ["single_device", "dp", "dpl", "local_search"]
    found = compare_methods(graph, devices, "capacity", methods=names, time_limit=2, seed=1)
    assert found.best is not None and found.best.value == 4.0 and not found.contradictions
    values = [one.value for one in found.compared if one.plan is not None]
    assert values == sorted(values, reverse=True) and found.compared[-1].method == "single_device"
    assert found.bounds["chain"] == 4.0 == solve(graph, devices, "capacity").value
    assert found.gap(found.compared[-1]) == (4.0 - found.compared[-1].value) / 4.0
    text = found.summary(80)
    assert text.startswith("capacity: 4 samples in flight by dp") and "per sample" in text
    rows = json.loads(found.to_json())["methods"]
    assert rows[0]["time_per_sample"] == 6.5


@pytest.mark.parametrize("methods", [False, 3.5, len, ["dp", 3]])
def test_methods_that_are_no_names_are_refused(methods: Any) -> None:
    with pytest.raises(PartitionerError):
        compare_methods(diamond(), gpus(), methods=methods)
