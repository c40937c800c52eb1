"""From a graph to a plan for latency: the optimum of small workloads, and no method better than that."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    Plan,
    WorkloadError,
    certify,
    evaluate,
    load_plan,
    solve,
)
from partitioner.formats.plan_record import load_record, resolved
from partitioner.methods.latency import solve as latency
from partitioner.methods.registry import METHODS
from partitioner.methods.solvers.backends.catalogue import BACKENDS, is_present
from tests.methods.inline_worker_pool import InlineWorkerPool
from tests.methods.slow_parameters import slow
from tests.oracle_latency import best_latency
from tests.random_workloads import random_workload

PRESENT = [name for name, backend in BACKENDS.items() if is_present(backend)]
QUICK = [name for name, info in METHODS.items() if "latency" in info.objectives and name != "latency_ip"]
CHAIN = Graph.from_arrays(
    {"accelerator": [1.0] * 4, "cpu": [9.0] * 4}, [(0, 1), (1, 2), (2, 3)], [5.0, 1.0, 7.0], size=[1.0] * 4
)
DEVICES = Devices((DeviceKind("accelerator", 2, memory=2.0), DeviceKind("cpu", 1, pays_communication=False)))


def solved(graph: Graph, devices: Devices, subgraphs: int, **options: object) -> Plan | None:
    """A plan for latency; None if there is none."""
    try:
        return solve(graph, devices, "latency", subgraphs_per_accelerator=subgraphs, **options)  # type: ignore[arg-type]
    except (InfeasibleError, NoPlanFound, WorkloadError):
        return None


def check(seed: int, most_nodes: int, backend: str) -> bool:
    """The plan is the oracle's optimum, and says so; is there one?"""
    graph, devices = random_workload(np.random.default_rng(seed), most_nodes=most_nodes)
    subgraphs = 1 + seed % 2
    best = best_latency(graph, devices, subgraphs)
    plan = solved(graph, devices, subgraphs, backend=backend, workers=1)
    where = f"seed {seed}, {backend}"
    assert (plan is None) == np.isinf(best), where
    if plan is not None:
        assert plan.status == "optimal", where
        assert plan.value == pytest.approx(best, rel=1e-5, abs=1e-9), where
        assert plan.value >= best * (1 - 1e-9), where
    return plan is not None


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run solvers in this process."""
    monkeypatch.setattr(latency, "WorkerPool", InlineWorkerPool)


@pytest.fixture
def unaided(inline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave finding and proving to the solvers."""
    monkeypatch.setattr(latency, "_starts", lambda *known: iter(()))
    monkeypatch.setattr(latency, "bound_of", lambda *_: 0.0)


@pytest.mark.usefixtures("unaided")
@pytest.mark.parametrize("seeds", [range(200, 209), slow(range(209, 260))])
def test_solvers_alone_equal_the_oracle(seeds: range) -> None:
    backends = [name for name in ("scip", "cpsat", "auto") if name in (*PRESENT, "auto")]
    assert sum(check(seed, 4, backends[seed % len(backends)]) for seed in seeds) > len(seeds) * 2 / 3


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("seeds", [range(300, 310), slow(range(310, 360))])
def test_the_method_equals_the_oracle(seeds: range) -> None:
    assert sum(check(seed, 4, "auto") for seed in seeds) > len(seeds) * 2 / 3


@pytest.mark.parametrize("seeds", [range(400, 406), slow(range(406, 440))])
@pytest.mark.parametrize("method", QUICK)
def test_no_method_is_better_than_the_optimum(method: str, seeds: range) -> None:
    """Every plan keeps the rules, and its bound is one."""
    plans = 0
    for seed in seeds:
        graph, devices = random_workload(np.random.default_rng(seed), most_nodes=4)
        subgraphs = 1 + seed % 2
        plan = solved(graph, devices, subgraphs, method=method)
        if plan is not None:
            best = best_latency(graph, devices, subgraphs)
            assert plan.bound <= best * (1 + 1e-9) <= plan.value * (1 + 2e-9), f"seed {seed}"
            plans += 1
    assert plans > len(seeds) * 3 / 8


def test_a_plan_keeps_its_schedule_in_a_file(tmp_path: Path) -> None:
    plan = solve(CHAIN, DEVICES, "latency")
    assert (plan.value, plan.status) == (6.0, "optimal")
    assert plan.schedule is not None and [run.finish for run in plan.schedule.entries] == [3.0, 6.0]
    plan.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    subgraphs = resolved(load_record(tmp_path / "plan.json"), CHAIN, DEVICES).subgraphs
    assert subgraphs == plan.subgraphs
    assert evaluate(CHAIN, DEVICES, plan.placement, "latency", subgraphs=subgraphs).value == 6.0
    assert "critical path" in plan.summary(80)
    assert json.loads(plan.to_json())["schedule"]["critical_path"] == [0, 1]


def test_a_warm_start_is_where_it_starts() -> None:
    """More subgraphs begin with the plan that has fewer; a certificate takes it too."""
    plan = solve(CHAIN, DEVICES, "latency")
    more = solve(CHAIN, DEVICES, "latency", subgraphs_per_accelerator=2, warm_start=plan)
    assert more.value <= plan.value
    assert certify(CHAIN, DEVICES, plan, "latency").bound == 6.0


def test_latency_is_for_convex_subgraphs() -> None:
    with pytest.raises(
        OptionError, match="split 'chain' is not available for objective 'latency' with method auto"
    ):
        solve(CHAIN, DEVICES, "latency", split="chain")


@pytest.mark.slow
@pytest.mark.usefixtures("unaided")
@pytest.mark.parametrize("first", range(2_000, 3_760, 220))
def test_solvers_alone_equal_the_oracle_on_many_graphs(first: int) -> None:
    """As above, on more of them, with SCIP and CP-SAT in turn."""
    seeds = range(first, first + 220)
    assert sum(check(seed, 4, ("scip", "cpsat")[seed // 2 % 2]) for seed in seeds) > 150
