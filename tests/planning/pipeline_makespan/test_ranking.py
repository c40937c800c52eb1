"""Plans for a makespan: simulated, bounded from below, never worse than what they start from."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import (
    Constraints,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    OptionError,
    load_plan,
    solve,
)
from partitioner.cli.command_line import main
from partitioner.planning.objectives import SIMULATED
from partitioner.planning.options import request_of
from partitioner.planning.pipeline_makespan.candidates import Ranking
from partitioner.schedule import simulate
from partitioner.workload.virtual_stages.schedules import ALONE
from partitioner.workload.workload import Workload

SCHEDULES = ("gpipe", "1f1b", "1f1b_async")


def random_line(seed: int, nodes: int = 6) -> Graph:
    """A path with random times and costs, and its backward nodes, tied to the forward ones."""
    random = np.random.default_rng(seed)
    count = 2 * nodes
    return Graph.from_arrays(
        {"gpu": random.integers(1, 9, count).astype(float)},
        [(i, i + 1) for i in range(count - 1)],
        random.integers(0, 4, count - 1) / 2,
        activations=1.0,
        backward=[i >= nodes for i in range(count)],
        color=[min(i, count - 1 - i) for i in range(count)],
    )


def every_pipeline(nodes: int, devices: int) -> list[dict[int, str]]:
    """All ways to cut a path and its backward nodes into stages."""
    found = []
    for cuts in range(devices):
        for where in combinations(range(1, nodes), cuts):
            stage = [sum(node >= cut for cut in where) for node in range(nodes)]
            found.append({i: f"gpu{stage[min(i, 2 * nodes - 1 - i)]}" for i in range(2 * nodes)})
    return found


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_the_bound_is_true_and_the_plan_near_the_best(schedule: str, seed: int) -> None:
    """Against all pipelines; the value is what the simulation says of the plan."""
    graph, devices = random_line(seed), Devices((DeviceKind("gpu", 3),))
    plan = solve(graph, devices, "makespan", schedule=schedule, microbatches=5)
    best = min(
        simulate(graph, devices, placement, schedule, 5).makespan for placement in every_pipeline(6, 3)
    )
    assert plan.bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= plan.value <= 1.1 * best
    assert plan.value == simulate(graph, devices, plan, schedule, 5).makespan
    assert (plan.method, plan.objective, plan.split) == ("simulated", "makespan", "chain")


@pytest.mark.parametrize(("first", "count"), [(0, 2), pytest.param(2, 8, marks=pytest.mark.slow)])
def test_it_is_never_worse_than_the_best_plan_for_throughput(first: int, count: int) -> None:
    """And somewhere better, as one batch is short."""
    better = 0
    for seed in range(first, first + count):
        graph, devices = random_line(seed, 8), Devices((DeviceKind("gpu", 4),))
        fastest = simulate(graph, devices, solve(graph, devices, schedule="1f1b"), "1f1b", 4).makespan
        plan = solve(graph, devices, "makespan", schedule="1f1b", microbatches=4)
        assert plan.value <= fastest
        better += plan.value < fastest * (1 - 1e-9)
    assert better > 0


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize(("first", "count"), [(0, 3), pytest.param(3, 12, marks=pytest.mark.slow)])
def test_annealing_finds_better_pipelines(name: str, first: int, count: int) -> None:
    """From uneven stages on unlike devices, at most the makespan that the simulation says; never worse."""
    better = 0
    for seed in range(first, first + count):
        graph = random_line(seed, 8)
        kinds = DeviceKind("gpu", 2, memory=90.0), DeviceKind("old", 1, times="gpu", time_factor=2.0)
        asked = {"schedule": name, "microbatches": 5, "time_limit": 60}
        request = request_of(Workload(graph, Devices(kinds)), SIMULATED, **asked)
        ranking = Ranking(request, request.settings)
        where = ["gpu0"] * 6 + ["old0", "gpu1"]
        ranking.start_from({i: where[min(i, 15 - i)] for i in range(16)})
        assert ranking.best is not None
        start = ranking.best.makespan
        ranking.anneal(start, 60.0)  # which is close to its bound
        assert ranking.best.makespan == start
        ranking.anneal(0.0, 0.5)
        assert ranking.best.makespan <= start
        again = simulate(graph, request.devices, ranking.best.solution, name, 5)
        assert ranking.best.makespan == again.makespan and ranking.best.evaluation.feasible
        better += ranking.best.makespan < start * (1 - 1e-9)
    assert better > count / 2


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("start", [1, 3])
@pytest.mark.parametrize(("first", "count"), [(0, 2), pytest.param(2, 12, marks=pytest.mark.slow)])
def test_annealing_finds_the_best_number_of_stages(first: int, count: int, start: int, name: str) -> None:
    """From two stages and from four, unless their number is given; the best of all pipelines."""
    for seed in range(first, first + count):
        graph, devices = random_line(seed, 6), Devices((DeviceKind("gpu", 4),))
        cases = every_pipeline(6, 4)
        makespan = {i: simulate(graph, devices, placed, name, 3).makespan for i, placed in enumerate(cases)}
        of_size = {i for i, placed in enumerate(cases) if len(set(placed.values())) == start + 1}
        for limits, which in ((Constraints(), set(makespan)), (Constraints(stages=start + 1), of_size)):
            asked = {"schedule": name, "microbatches": 3, "time_limit": 60, "constraints": limits}
            request = request_of(Workload(graph, devices), SIMULATED, **asked)
            ranking = Ranking(request, request.settings)
            ranking.start_from(cases[min(of_size)])
            ranking.anneal(0.0, 0.5)
            assert ranking.best is not None
            assert ranking.best.makespan == pytest.approx(min(makespan[i] for i in which), rel=1e-9)


@pytest.mark.parametrize("changed", [{"deterministic": True}, {"schedule": "inference"}])
def test_nothing_is_annealed_in_other_runs(changed: dict[str, Any]) -> None:
    """Deterministic ones do not depend on the time, and schedules without backward passes have other rows."""
    given: dict[str, Any] = {"schedule": "1f1b", "microbatches": 5, "time_limit": 60} | changed
    graph, devices = random_line(0, 8), Devices((DeviceKind("gpu", 3),))
    if changed.get("schedule"):
        graph = Graph.from_arrays({"gpu": [1.0, 2.0, 3.0]}, [(0, 1), (1, 2)])
    request = request_of(Workload(graph, devices), SIMULATED, **given)
    ranking = Ranking(request, request.settings)
    ranking.start_from({node: f"gpu{int(i in (0, 15))}" for i, node in enumerate(graph.ids)})
    before = ranking.statistics["candidates"]
    ranking.anneal(0.0, 60.0)
    assert ranking.best is not None and ranking.statistics["candidates"] == before


@pytest.mark.parametrize("name", ["1f1b", "interleaved_1f1b"])
def test_a_deterministic_run_is_the_one_without_a_limit(name: str) -> None:
    """However much time there is, as long as it does not end."""
    for seed in range(2):
        graph, devices = random_line(seed, 9), Devices((DeviceKind("gpu", 3),))
        asked: dict[str, Any] = {"schedule": name, "microbatches": 6}
        free = solve(graph, devices, "makespan", **asked)
        for limit in (1000.0, 100000.0):
            plan = solve(graph, devices, "makespan", **asked, deterministic=True, time_limit=limit)
            assert plan.placement == free.placement and plan.bound == free.bound
            assert plan.statistics == free.statistics


def test_limits_are_kept() -> None:
    """Two stages where two are asked for, and activations that fit."""
    graph = random_line(1)
    two = Constraints(stages=2)
    plan = solve(
        graph, Devices((DeviceKind("gpu", 3),)), "makespan", schedule="1f1b", microbatches=4, constraints=two
    )
    assert len(plan.stages) == 2
    small = Devices((DeviceKind("gpu", 3, memory=12.0),))
    plan = solve(graph, small, "makespan", schedule="1f1b", microbatches=8)
    assert simulate(graph, small, plan, "1f1b", 8).fits.all()
    tiny = Devices((DeviceKind("gpu", 3, memory=4.0),))
    with pytest.raises(InfeasibleError):
        solve(graph, tiny, "makespan", schedule="1f1b", microbatches=8)


def test_a_plan_to_start_from_is_a_candidate() -> None:
    graph, devices = random_line(3), Devices((DeviceKind("gpu", 3),))
    first = solve(graph, devices, "makespan", schedule="gpipe", microbatches=3)
    for start in (first, first.placement):
        again = solve(graph, devices, "makespan", schedule="gpipe", microbatches=3, warm_start=start)
        assert again.value <= first.value
        assert again.statistics["candidates"] == first.statistics["candidates"] + 1


def test_what_is_better_from_the_start_is_kept() -> None:
    """The best of all pipelines cannot be improved."""
    graph, devices = random_line(3), Devices((DeviceKind("gpu", 3),))
    best = min(every_pipeline(6, 3), key=lambda p: simulate(graph, devices, p, "gpipe", 3).makespan)
    plan = solve(graph, devices, "makespan", schedule="gpipe", microbatches=3, warm_start=best)
    assert plan.value == simulate(graph, devices, best, "gpipe", 3).makespan


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"microbatches": 4}, "objective 'makespan' needs schedule"),
        ({"schedule": "1f1b"}, "objective 'makespan' needs microbatches"),
        ({"schedule": "1f1b", "microbatches": 4, "split": "free"}, "split 'free' is not available"),
        ({"schedule": "1f1b", "microbatches": 4, "method": "dp"}, "objective 'makespan' is not available"),
        ({"schedule": "1f1b", "microbatches": 4, "method": "heft"}, "method heft runs one step"),
        ({"schedule": "waltz", "microbatches": 4}, "schedule = 'waltz'"),
        ({"schedule": "1f1b", "microbatches": 4, "gap": 2}, "gap = 2"),
    ],
)
def test_what_cannot_be_asked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        solve(random_line(1), Devices((DeviceKind("gpu", 2),)), "makespan", **options)


def test_the_command_line_knows_it(workload_file: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "plan.json"
    options = ("--objective", "makespan", "--schedule", "gpipe", "--microbatches", "4")
    assert main(["solve", str(workload_file), *options, "--output", str(path)]) == 0
    assert "per batch" in capsys.readouterr().out
    assert main(["simulate", str(workload_file), str(path), *options[2:]]) == 0
    assert f"4 microbatches: {load_plan(path).value:.6g}," in capsys.readouterr().out
