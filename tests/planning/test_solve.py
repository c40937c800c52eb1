"""`solve` finds the known optimum of every tiny instance, proves it, and refuses what it cannot do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partitioner import (
    BackendUnavailable,
    ContradictionError,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    PartitionerError,
    Plan,
    Progress,
    WorkloadError,
    evaluate,
    load_plan,
    solve,
    to_networkx,
)
from partitioner.base.errors import Flaw
from partitioner.planning.request import Request
from partitioner.workload.workload import Workload
from tests.instances import (
    INFEASIBLE,
    SOLVABLE,
    Instance,
    accelerator_only,
    badly_packed,
    branchy,
    chain,
    diamond,
    three_kinds,
    too_large,
    training,
    unsupported,
    woven,
)

Make = Callable[[], Instance]


def timeless(plan: Plan) -> Plan:
    """The plan without its running time, which alone may differ between equal runs."""
    return replace(plan, runtime_seconds=0.0)


def random_graph(seed: int, n: int = 12) -> Graph:
    """A random graph of n nodes with distinct times."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.25]
    return Graph.from_arrays({"accelerator": rng.random(n)}, edges, rng.random(n)[[u for u, _ in edges]])


@pytest.mark.parametrize("make", SOLVABLE)
def test_the_optimum_is_found_and_proven(make: Make) -> None:
    instance = make()
    plan = solve(instance.graph, instance.devices)
    assert plan.value == pytest.approx(instance.optimum, rel=1e-12)
    assert (plan.status, plan.stop_reason, plan.gap) == ("optimal", "optimal", 0.0)
    assert plan.bound == plan.value


@pytest.mark.parametrize("make", SOLVABLE)
@pytest.mark.parametrize("method", ["dp", "dpl", "single_device"])
def test_every_method_says_no_more_than_it_knows(make: Make, method: str) -> None:
    """A plan is never below the optimum, a bound never above it, and optimal means so."""
    instance = make()
    assert instance.optimum is not None
    try:
        plan = solve(instance.graph, instance.devices, method=method)
    except NoPlanFound:  # one device may not run everything
        assert method == "single_device" and make is unsupported
        return
    assert plan.bound * (1 - 1e-12) <= instance.optimum <= plan.value * (1 + 1e-12)
    if plan.status == "optimal":
        assert plan.value == pytest.approx(instance.optimum, rel=1e-12)


@pytest.mark.parametrize("make", SOLVABLE)
def test_a_plan_is_what_the_evaluator_says(make: Make) -> None:
    """Value, loads and stages are those of the placement, which breaks no rule."""
    instance = make()
    plan = solve(instance.graph, instance.devices)
    evaluation = evaluate(instance.graph, instance.devices, plan.placement)
    assert evaluation.feasible and evaluation.shape.name == "chain"
    assert (plan.value, plan.devices) == (evaluation.value, evaluation.loads)
    assert sorted(plan.stages) == sorted(set(plan.placement.values()))
    assert plan.workload_sha256 == Workload(instance.graph, instance.devices).sha256


def test_stages_are_in_the_order_of_the_edges() -> None:
    for seed in range(10):
        graph = random_graph(seed)
        plan = solve(graph, Devices.accelerated(3))
        stage = {name: place for place, name in enumerate(plan.stages)}
        where = [stage[plan.placement[node]] for node in graph.ids]
        assert all(where[u] <= where[v] for u, v in graph.edges.tolist())


def test_the_plan_remembers_the_call() -> None:
    plan = solve(chain().graph, chain().devices, method="dp", time_limit=60, gap=0.25, seed=7, orders=3)
    assert (plan.objective, plan.split, plan.method, plan.backend) == ("throughput", "chain", "dp", "numba")
    assert plan.seed == 7
    assert plan.options == {"method": "dp", "time_limit": 60, "gap": 0.25, "orders": 3}


@pytest.mark.parametrize("method", ["dp", "dpl"])
def test_the_same_seed_gives_the_same_plan(method: str) -> None:
    graph, devices = random_graph(5, 30), Devices.accelerated(3)
    first, second = (timeless(solve(graph, devices, method=method, seed=3)) for _ in range(2))
    assert first == second


def test_a_time_limit_does_not_change_what_is_found_in_time() -> None:
    instance = diamond()
    assert solve(instance.graph, instance.devices, time_limit=100).status == "optimal"


def test_a_time_limit_that_is_over_at_once_still_gives_what_there_is() -> None:
    """A plan with a true bound, or none found, but never a claim that is not proven."""
    graph, devices = random_graph(1, 60), Devices.accelerated(4)
    try:
        plan = solve(graph, devices, time_limit=1e-9)
    except NoPlanFound as error:
        assert "time_limit" in str(error)
    else:
        best = solve(graph, devices)
        assert plan.bound * (1 - 1e-12) <= best.value <= plan.value * (1 + 1e-12)


def test_a_gap_is_kept() -> None:
    """With a gap of 0.9 any of these plans will do; it is proven to be within the gap."""
    for seed in range(10):
        graph, devices = random_graph(seed), Devices.accelerated(3)
        plan, best = solve(graph, devices, gap=0.9), solve(graph, devices)
        assert plan.gap <= 0.9
        assert plan.bound <= best.value * (1 + 1e-12) and best.value <= plan.value * (1 + 1e-12)
        assert plan.stop_reason in ("gap", "optimal")
        assert (plan.status == "optimal") == (plan.stop_reason == "optimal")


@pytest.mark.parametrize(("first", "count"), [(0, 2), pytest.param(2, 8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["dp", "dpl"])
def test_a_feasible_chain_as_start_is_never_made_worse(method: str, first: int, count: int) -> None:
    for seed in range(first, first + count):
        graph, devices = random_graph(seed), Devices.accelerated(3)
        best = solve(graph, devices)
        assert solve(graph, devices, method=method, warm_start=best).value <= best.value * (1 + 1e-12)
        assert solve(graph, devices, method=method, warm_start=best.placement, orders=1).value <= (
            best.value * (1 + 1e-12)
        )


@pytest.mark.parametrize(
    "start",
    [
        {
            "a": "accelerator0",
            "b": "accelerator1",
            "c": "accelerator0",
            "d": "accelerator0",
            "e": "accelerator0",
        },
        dict.fromkeys("abcde", "accelerator7"),
        dict.fromkeys("abcde", "cpu0"),
    ],
)
def test_a_start_that_is_no_feasible_chain_is_ignored(start: dict[str, str]) -> None:
    """Torn and free, on a device that does not exist, on a kind without times."""
    plan = solve(woven().graph, woven().devices, warm_start=start)
    assert (plan.value, plan.status) == (11.0, "optimal")


@pytest.mark.parametrize("start", [{}, {"a": "gpu0"}, ["a"], 5])
def test_a_start_that_is_no_placement_is_refused(start: Any) -> None:
    with pytest.raises(WorkloadError):
        solve(woven().graph, woven().devices, warm_start=start)


def test_progress_is_told() -> None:
    """What is told is ever nearer the truth: values do not rise."""
    told: list[Progress] = []
    plan = solve(random_graph(2, 25), Devices.accelerated(3), on_progress=told.append)
    assert told and all(isinstance(progress, Progress) for progress in told)
    values = [progress.value for progress in told]
    assert values == sorted(values, reverse=True) and values[-1] >= plan.value * (1 - 1e-12)
    assert all(progress.bound <= plan.value * (1 + 1e-12) for progress in told)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"time_limit": -1}, "time_limit = -1: must be a positive number"),
        ({"gap": 2}, "gap = 2: must be a fraction"),
        ({"seed": "x"}, "seed = 'x': must be an integer"),
        ({"workers": 0}, "workers = 0: must be an integer"),
        ({"granularity": "block"}, "granularity = 'block': must be one of operator, layer"),
        ({"colour": 1}, "option 'colour' is unknown"),
        ({"method": "magic"}, "method = 'magic': must be one of auto, dp, ip, dpl"),
        ({"method": "dp", "objective": "profit"}, "objective = 'profit': must be one of throughput"),
        ({"method": "dp", "split": "diagonal"}, "split = 'diagonal': must be one of chain"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        solve(chain().graph, chain().devices, **options)
    assert text in str(caught.value)


def test_a_backend_that_the_method_does_not_have_is_unavailable() -> None:
    with pytest.raises(BackendUnavailable, match="method dp does not run on 'abacus'"):
        solve(chain().graph, chain().devices, method="dp", backend="abacus")


@pytest.mark.parametrize("make", SOLVABLE)
def test_a_networkx_graph_is_solved_alike(make: Make) -> None:
    instance = make()
    plan = solve(to_networkx(instance.graph), instance.devices)
    assert plan.value == pytest.approx(instance.optimum, rel=1e-12)
    assert set(plan.placement) == set(instance.graph.ids)


@pytest.mark.parametrize("graph", [None, 5, "graph.json", [[0, 1]]])
def test_what_is_no_graph_is_refused(graph: Any) -> None:
    with pytest.raises(WorkloadError, match=r"must be a partitioner\.Graph or a networkx\.DiGraph"):
        solve(graph, chain().devices)


def test_devices_that_the_graph_has_no_times_for_are_refused() -> None:
    with pytest.raises(WorkloadError, match="the graph has times only for accelerator"):
        solve(chain().graph, Devices((DeviceKind("gpu", 2),)))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (too_large, "memory: the nodes take 9 together, all devices hold 8"),
        (badly_packed, "no chain of stages obeys the limits"),
        (accelerator_only, "memory: nodes that run on accelerator only take 9, these hold 8"),
    ],
)
def test_an_infeasible_workload_says_which_limit(make: Make, text: str) -> None:
    assert make in INFEASIBLE
    with pytest.raises(InfeasibleError) as caught:
        solve(make().graph, make().devices)
    assert text in str(caught.value)


def test_a_cost_that_stands_for_never_is_never_paid() -> None:
    """0 with 2 apart from 1 costs 0.9 + 0.2; to cut 0 -> 2 would cost ten million.

    Such a number among small ones must not disturb the sums, nor keep the search from ending.
    """
    for never in (1e7, 1e12, 1e18, 1e30, 1e100):
        graph = Graph.from_arrays({"accelerator": [0.7, 0.7, 0.2]}, [(0, 1), (0, 2)], [0.2, never])
        plan = solve(graph, Devices.accelerated(2), time_limit=20)
        assert plan.value == pytest.approx(1.1, rel=1e-12) and plan.stop_reason == "optimal"


@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e30, 1e90])
def test_the_unit_does_not_matter(scale: float) -> None:
    """Times, costs, sizes and memory in other units give the same plan."""
    instance = branchy()
    graph = replace(instance.graph, time=instance.graph.time * scale, cost=instance.graph.cost * scale)
    plan = solve(graph, instance.devices)
    assert plan.value == pytest.approx(5.0 * scale, rel=1e-9) and plan.status == "optimal"
    large = replace(too_large().graph, size=too_large().graph.size * scale)
    with pytest.raises(InfeasibleError):
        solve(large, Devices.accelerated(2, memory=4.0 * scale))
    assert solve(large, Devices.accelerated(3, memory=4.0 * scale)).status == "optimal"


@pytest.mark.parametrize("count", [1024, pytest.param(65_536, marks=pytest.mark.slow)])
def test_more_devices_than_nodes_do_no_harm(count: int) -> None:
    assert solve(chain().graph, Devices.accelerated(count)).value == 3.5


def test_layers_may_be_kept_together() -> None:
    """Layers {0, 1} and {2}: 0 1 | 2 gives 4.5 | 2.5, the finer split is not allowed."""
    graph = replace(chain().graph, layer=np.array([0, 0, 1]), layer_labels=("first", "second"))
    assert solve(graph, chain().devices).value == 3.5
    assert solve(graph, chain().devices, granularity="layer").value == 4.5


@pytest.mark.parametrize("make", [training, three_kinds, unsupported])
def test_a_plan_survives_pickle(make: Make) -> None:
    plan = solve(make().graph, make().devices)
    assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize(
    "error",
    [
        PartitionerError("text"),
        WorkloadError([Flaw("node 1", "size", "-1", "must be at least 0")], "file.json"),
        OptionError("text"),
        InfeasibleError("text"),
        NoPlanFound("text"),
        BackendUnavailable("text"),
        ContradictionError("text"),
    ],
)
def test_every_error_survives_pickle(error: PartitionerError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert isinstance(again, PartitionerError)
    assert vars(again) == vars(error)


def test_published_optima_are_found(published: Any, reference: Callable[[str], Any]) -> None:
    """On three of the published workloads, the value that the paper's program prints."""
    from partitioner import load

    rows = {row["workload"]: row for row in reference("table1")["rows"]}
    for name in ("bert3_inference", "bert24_inference", "gnmt_training"):
        workload = load(published / "throughput" / f"{name}.json")
        plan = solve(workload.graph, workload.devices)
        assert plan.status == "optimal"
        assert plan.value == pytest.approx(rows[name]["contiguous"], abs=0.0051)


@pytest.mark.parametrize("method", ["dp", "pipeline"])
def test_a_plan_that_no_linear_order_has_is_written_and_read(method: str, tmp_path: Path) -> None:
    """Two paths from GPU to CPU: an order that follows one to its end would have to come back."""
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 4, "cpu": [1.0] * 4},
        [(0, 2), (1, 3)],
        allowed={"gpu": [True, True, False, False], "cpu": [False, False, True, True]},
    )
    plan = solve(graph, Devices((DeviceKind("gpu", 1), DeviceKind("cpu", 1))), method=method, orders=1)
    assert plan.value == 2.0 and plan.statistics["ideals"] == 9 and "linear_value" not in plan.statistics
    plan.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json").to_json() == plan.to_json()


@pytest.mark.parametrize("split", ["chain", "convex", "free"])
def test_every_split_of_a_method_can_be_asked_for_with_gpipe(split: str) -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)], backward=[False, True])
    assert solve(graph, Devices.accelerated(2), "gpipe", method="single_device", split=split).value == 3.0


@pytest.mark.parametrize(
    ("objective", "options"), [("throughput", {}), ("makespan", {"schedule": "1f1b", "microbatches": 2})]
)
def test_memory_is_added_up_before_any_other_work(
    objective: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workload too large for all devices together is not contracted, with and without a schedule."""

    def contracted(request: Request) -> None:
        raise AssertionError("the workload was contracted")

    monkeypatch.setattr(Request, "problem", contracted)
    instance = too_large()
    with pytest.raises(InfeasibleError, match="the nodes take 9 together"):
        solve(instance.graph, instance.devices, objective, **options)
