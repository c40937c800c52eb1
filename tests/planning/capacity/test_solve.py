"""The most samples in flight, and the least time for as many, are those of an exhaustive search."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    OptionError,
    WorkloadError,
    evaluate,
    solve,
)
from tests.oracle_capacity import best_capacity, best_pipelined_capacity, with_cache
from tests.random_workloads import random_workload, uneven_workload

SPLITS = ("chain", "convex", "free")


def compare_with_all_placements(seed: int, split: str, most_nodes: int = 6) -> str:
    """Compare a plan with the best placement; return what the case was about."""
    rng = np.random.default_rng(seed)
    graph, devices = with_cache(*uneven_workload(rng, most_nodes), rng)
    limit: dict[str, Any] = {}
    if rng.random() < 0.4:
        limit = {"max_slowdown": float(rng.choice([1.0, 1.0, 1.2, 2.0]))}
    elif rng.random() < 0.5:
        limit = {"max_time_per_sample": float(rng.choice([1.0, 3.0, 8.0]))}
    try:
        best = best_capacity(
            graph, devices, split, limit.get("max_time_per_sample", np.inf), limit.get("max_slowdown")
        )
    except KeyError:  # a kind that the graph has no times for
        return "refused"
    try:
        plan = pt.solve(graph, devices, "capacity", split=split, **limit)
    except (InfeasibleError, WorkloadError):
        assert best is None, (seed, split, best)
        return "infeasible"
    assert best is not None, (seed, split)
    assert (plan.value, plan.bound, plan.status) == (best.samples, best.samples, "optimal"), (seed, split)
    assert plan.bottleneck.load == pytest.approx(best.time, rel=1e-9, abs=1e-12), (seed, split)
    found = pt.evaluate(graph, None, plan)
    assert found.feasible and found.value == plan.value and found.objective == "capacity"
    return next(iter(limit), "unlimited")


@pytest.mark.parametrize("seed", range(60))
def test_chains_hold_what_the_best_placement_holds(seed: int) -> None:
    compare_with_all_placements(seed, "chain")


@pytest.mark.slow
@pytest.mark.parametrize("split", ["convex", "free"])
@pytest.mark.parametrize("seed", range(12))
def test_other_splits_hold_what_the_best_placement_holds(seed: int, split: str) -> None:
    compare_with_all_placements(seed, split, most_nodes=5)


@pytest.mark.parametrize("seed", range(12))
def test_schedules_and_levels_count(seed: int) -> None:
    """Of workspaces the largest counts under a schedule; links between groups are slower."""
    rng = np.random.default_rng(seed)
    graph, devices = with_cache(*random_workload(rng, 5), rng)
    parts = rng.choice([0.0, 1.0, 2.0], (5, len(graph)))
    graph = replace(graph, parts=parts, cache=4 * graph.cache)
    kinds = tuple(replace(kind, memory=(kind.memory or 0.0) + 12) for kind in devices.kinds)
    devices = replace(devices, kinds=kinds)
    if seed % 2:
        kinds = (replace(kinds[0], count=4), *(replace(kind, count=0) for kind in kinds[1:]))
        devices = replace(devices, kinds=kinds, levels=(pt.Level("host", {kinds[0].name: 2}, 3.0),))
        graph = replace(graph, allowed=np.ones_like(graph.allowed))
    for schedule in (None, "inference"):
        best = best_pipelined_capacity(graph, devices, schedule)
        try:
            plan = pt.solve(graph, devices, "capacity", schedule=schedule)
        except (InfeasibleError, WorkloadError):
            assert best is None
            continue
        assert best is not None and plan.status == "optimal"
        assert plan.value == best.samples and plan.bottleneck.load == pytest.approx(best.time)


def small() -> tuple[Graph, Devices]:
    """Four nodes of size 2, of which three keep 1 of every sample, for two devices of 12."""
    graph = Graph.from_arrays(
        {"accelerator": [3.0, 1.0, 2.0, 4.0]},
        [(0, 1), (1, 2), (2, 3)],
        cost=0.5,
        size=2.0,
        cache=[1.0, 1.0, 1.0, 0.0],
        layer=["layers.0", "layers.1", "layers.2", "head"],
    )
    return graph, Devices.accelerated(2, memory=12.0)


def test_a_plan_by_hand() -> None:
    """Two nodes each: 4 and 4 of 12 are taken, 2 and 1 by a sample, so 4 and 8 samples fit."""
    plan = pt.solve(*small(), "capacity")
    assert (plan.value, plan.bound, plan.status, plan.gap, plan.maximised) == (4.0, 4.0, "optimal", 0.0, True)
    assert [(one.cache, one.capacity, one.memory) for one in plan.devices] == [(2.0, 4, 12.0), (1.0, 8, 8.0)]
    assert plan.bottleneck.load == 6.5 == plan.statistics["time_bound"]
    assert plan.statistics["searches"] < 10


def test_the_text_of_a_plan_fits_80_columns() -> None:
    text = pt.solve(*small(), "capacity").summary(80)
    first, second, _, titles, *_ = text.splitlines()
    assert first == "capacity, chain split: 4 samples in flight, optimal"
    assert second == "6.5 per sample, the least time at that capacity"
    assert titles.split()[-5:] == ["memory", "full", "per", "sample", "samples"]
    assert max(map(len, text.splitlines())) <= 80


def test_more_time_for_a_sample_never_lowers_the_capacity() -> None:
    graph, devices = small()
    kinds = (replace(devices.kinds[0], count=1), replace(devices.kinds[0], name="large", memory=40.0))
    kinds = (kinds[0], replace(kinds[1], count=1, times="accelerator", time_factor=2.0))
    found = [
        pt.solve(graph, Devices(kinds), "capacity", max_slowdown=slowdown) for slowdown in (1.0, 1.5, 4.0)
    ]
    values = [plan.value for plan in found]
    assert values == sorted(values) and values[0] < values[-1]
    least = found[0].bottleneck.load
    for plan, slowdown in zip(found, (1.0, 1.5, 4.0), strict=True):
        assert plan.bottleneck.load <= slowdown * least * (1 + 1e-9)


def test_a_plan_file_keeps_the_capacities(tmp_path: Path) -> None:
    graph, devices = small()
    plan = pt.solve(graph, devices, "capacity", max_time_per_sample=7.0)
    plan.save(tmp_path / "plan.json")
    assert pt.load_plan(tmp_path / "plan.json") == plan
    assert pt.evaluate(graph, None, plan).value == plan.value
    late = pt.evaluate(graph, None, plan, max_time_per_sample=6.0)
    assert late.violations == ("accelerator1 takes 6.5 a sample, max_time_per_sample is 6",)


def test_a_certificate_says_how_many_samples_are_missing() -> None:
    placement = {0: "accelerator0", 1: "accelerator0", 2: "accelerator0", 3: "accelerator1"}
    found = pt.certify(*small(), placement, "capacity")
    assert (found.value, found.bound, found.gap) == (2.0, 4.0, 0.5)
    assert (
        "at least 0.5 x the upper bound" in found.summary() and "a better one is known: 4" in found.summary()
    )


def test_a_time_limit_leaves_a_plan_with_a_bound() -> None:
    graph, devices = small()
    plan = pt.solve(graph, devices, "capacity", time_limit=0.001)
    assert 0 <= plan.value <= plan.bound and pt.evaluate(graph, None, plan).value == plan.value


def test_a_run_that_is_stopped_at_once_has_a_plan() -> None:
    stop = threading.Event()
    stop.set()
    plan = pt.solve(*small(), "capacity", stop=stop)
    assert plan.stop_reason == "interrupted" and plan.value < plan.bound


def test_progress_names_the_number_in_question() -> None:
    told: list[pt.Progress] = []
    pt.solve(*small(), "capacity", on_progress=told.append)
    assert any(progress.phase.startswith("0 samples in flight, ") for progress in told)


def test_a_schedule_counts_the_largest_workspace_only() -> None:
    """Workspaces of 4 and 4: without a schedule each counts, under one the larger."""
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], workspace=4.0, cache=1.0)
    devices = Devices.accelerated(1, memory=12.0)
    assert pt.solve(graph, devices, "capacity").value == 2
    assert pt.solve(graph, devices, "capacity", schedule="inference").value == 4


def test_constraints_hold() -> None:
    graph, devices = small()
    plan = pt.solve(graph, devices, "capacity", constraints=pt.Constraints(pin={1: "accelerator1"}))
    assert plan.placement[1] == "accelerator1" and plan.status == "optimal"


REFUSED: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
    ({"max_time_per_sample": 0}, OptionError, "max_time_per_sample = 0: must be a positive number"),
    ({"max_slowdown": 0.5}, OptionError, "max_slowdown = 0.5: must be a number from 1"),
    (
        {"max_slowdown": 2.0, "max_time_per_sample": 5.0},
        OptionError,
        "max_time_per_sample and max_slowdown limit the same time: give one of them",
    ),
    (
        {"max_time_per_sample": 6.0},
        InfeasibleError,
        "max_time_per_sample = 6: the least time per sample is 6.5",
    ),
    ({"method": "latency_ip"}, OptionError, "objective 'throughput' is not available with method latency_ip"),
)


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_what_cannot_be_asked_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pt.solve(*small(), "capacity", **options)


def test_a_workload_that_nothing_limits_is_refused() -> None:
    graph, devices = small()
    with pytest.raises(WorkloadError, match="graph: cache = 0 for every node: must be above 0"):
        pt.solve(replace(graph, cache=np.zeros(4)), devices, "capacity")
    with pytest.raises(WorkloadError, match="device kind accelerator: memory = None: must be given"):
        pt.solve(graph, Devices.accelerated(2), "capacity")


def test_other_objectives_note_that_they_do_not_count_the_cache() -> None:
    assert any("only objective capacity counts it" in note for note in pt.solve(*small()).notes)


def test_a_schedule_that_holds_a_batch_counts_its_microbatches() -> None:
    """Each device holds the activations of all four: 12 bytes leave room for two samples."""
    graph = Graph.from_arrays(
        {"gpu": [1.0, 1.0]}, [(0, 1)], 0.1, size=1.0, cache=[1.0, 3.0], activations=[1.0, 1.0]
    )
    devices = Devices((DeviceKind("gpu", 2, memory=12.0),))
    plan = solve(graph, devices, "capacity", schedule="gpipe", microbatches=4)
    assert (plan.value, plan.status) == (2.0, "optimal")
    assert evaluate(graph, devices, plan).value == 2.0


@pytest.mark.parametrize("microbatches", [None, 4])
def test_schedules_with_several_stages_on_a_device_are_refused(microbatches: int | None) -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cache=[1.0, 3.0])
    devices = Devices((DeviceKind("gpu", 2, memory=12.0),))
    with pytest.raises(OptionError, match="schedule = 'zbv': must have one stage on each device"):
        solve(graph, devices, "capacity", schedule="zbv", microbatches=microbatches)
