"""Plans with several stages on a device are those of an exhaustive search, and are simulated as evaluated."""

from __future__ import annotations

import math
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
    PartitionerError,
    Plan,
    WorkloadError,
    evaluate,
    load_plan,
    solve,
)
from partitioner.schedule import simulate
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.methods.slow_parameters import slow
from tests.oracle_virtual_stages import best_virtual_stages
from tests.random_virtual_stages import VirtualCase, random_training, random_unlike_case, random_virtual_case


def solved(case: VirtualCase) -> Plan | None:
    try:
        return solve(case.graph, case.devices, "throughput", **case.options)
    except (InfeasibleError, WorkloadError):
        return None


def agrees_with_the_oracle(case: VirtualCase) -> None:
    name = case.schedule
    given = case.schedule, case.chunks, case.microbatches, case.constraints
    expected, plan = best_virtual_stages(case.graph, case.devices, *given), solved(case)
    assert (plan is None) == (expected is None)
    if plan is not None and expected is not None:
        assert plan.status == "optimal" and math.isclose(plan.value, expected, rel_tol=1e-9, abs_tol=1e-12)
        count = len(set(plan.stages))
        ranks = VIRTUAL[name].ranks(count, len(plan.stages) // count)
        assert plan.stages == tuple(plan.stages[rank] for rank in ranks)


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", range(12))
def test_small_plans_are_optimal(name: str, seed: int) -> None:
    agrees_with_the_oracle(random_virtual_case(np.random.default_rng(seed), name))


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", range(6))
def test_small_plans_on_unlike_devices_are_optimal(name: str, seed: int) -> None:
    """Over every order of every choice of the devices."""
    agrees_with_the_oracle(random_unlike_case(np.random.default_rng(seed), name))


@pytest.mark.slow
@pytest.mark.parametrize("name", VIRTUAL)
def test_many_small_plans_are_optimal(name: str) -> None:
    for seed in range(100, 150):
        agrees_with_the_oracle(random_virtual_case(np.random.default_rng(seed), name))
        agrees_with_the_oracle(random_unlike_case(np.random.default_rng(seed), name))


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize("seed", [*range(3), *map(slow, range(3, 10))])
def test_memory_is_that_of_the_simulation(name: str, seed: int) -> None:
    """The evaluator adds the largest workspace to the worst moment; without workspace both are equal."""
    rng = np.random.default_rng(seed)
    graph = random_training(rng, 8, path=True)
    parts = graph.parts.copy()
    parts[4] = 0.0
    graph = Graph(**{**vars(graph), "parts": parts})
    devices = Devices((DeviceKind("gpu", 3),))
    if not graph.backward.any():
        return
    plan = solve(graph, devices, schedule=name, microbatches=9)
    timeline = simulate(graph, devices, plan)
    memory = {load.name: load.memory for load in plan.devices}
    assert timeline.peak_memory.tolist() == [memory[name] for name in timeline.devices]


def line(blocks: int = 6, backward: bool = True) -> Graph:
    count = 2 * blocks if backward else blocks
    return Graph.from_arrays(
        {"gpu": [1.0 + (i % 3 == 0) for i in range(count)]},
        [(i, i + 1) for i in range(count - 1)],
        cost=0.125,
        backward=[i >= blocks for i in range(count)],
        color=[min(i, count - 1 - i) for i in range(count)] if backward else None,
        activations=1.0,
        layer=[f"layer.{min(i, 2 * blocks - 1 - i)}" for i in range(count)],
    )


GPUS = Devices((DeviceKind("gpu", 2),))


@pytest.mark.parametrize("objective", ["throughput", "makespan"])
@pytest.mark.parametrize("name", VIRTUAL)
def test_a_plan_file_has_all_of_it(name: str, objective: str, tmp_path: Path) -> None:
    plan = solve(line(), GPUS, objective, schedule=name, virtual_stages=2, microbatches=8)
    plan.save(tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again == plan and len(plan.by_stage) == len(plan.stages) == 4
    assert [layer for stage in plan.by_stage for layer in stage.layers] == [f"layer.{i}" for i in range(6)]
    assert evaluate(line(), GPUS, again).value == evaluate(line(), GPUS, plan).value
    timeline = simulate(line(), GPUS, again)
    assert timeline.makespan >= (plan.value if objective == "makespan" else 8 * plan.value) * (1 - 1e-9)
    assert all(name in plan.summary(80) for name in ("gpu0", "gpu1"))


def test_devices_that_do_not_pay_are_used_where_devices_have_one_stage_and_left_out_else() -> None:
    devices = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1, pays_communication=False)))
    edges = [(0, 1), (1, 2), (2, 3)]
    graph = Graph.from_arrays({"gpu": [1.0] * 4, "cpu": [9.0] * 4}, edges)
    plan = solve(graph, devices, schedule="interleaved_1f1b", microbatches=4)
    assert plan.stages == ("gpu0", "gpu1", "gpu0", "gpu1")
    graph = Graph.from_arrays(
        {"gpu": [5.0, 1.0, 1.0, 5.0], "cpu": [2.0, 9.0, 9.0, 2.0]},
        edges,
        backward=[False, False, True, True],
        color=[0, 1, 1, 0],
    )
    plan = solve(graph, devices, "throughput", schedule="zb_h1", microbatches=4)
    assert plan.value == 4.0 and plan.stages == ("cpu0", "gpu0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schedule": "zbv"}, "schedule 'zbv' needs microbatches"),
        (
            {"schedule": "1f1b", "virtual_stages": 2},
            "virtual_stages = 2: must be None unless",
        ),
        ({"schedule": "zbv", "microbatches": 4, "replicas": 2}, "replicas = 2: must be 1 for schedule 'zbv'"),
        ({"schedule": "zbv", "microbatches": 4, "method": "dp"}, "mean nothing to method dp"),
        ({"schedule": "dualpipev", "microbatches": 1}, "microbatches = 1: must be at least 2 for 1 devices"),
        (
            {"schedule": "zb_h1", "virtual_stages": 9, "microbatches": 4},
            "needs 9 stages on each device",
        ),
        ({"schedule": "zbv", "microbatches": 4, "objective": "batch"}, "mean nothing for objective 'batch'"),
    ],
)
def test_what_does_not_go_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PartitionerError, match=words) as caught:
        solve(line(), GPUS, **options)
    assert isinstance(caught.value, OptionError | InfeasibleError)


@pytest.mark.parametrize("objective", ["throughput", "makespan"])
def test_pinned_nodes_are_refused(objective: str) -> None:
    """Also if there is no time to search."""
    given: dict[str, Any] = {"schedule": "zbv", "microbatches": 4, "time_limit": 1e-3}
    with pytest.raises(OptionError, match="'zbv': does not support nodes that are pinned to a device"):
        solve(line(), GPUS, objective, **given, constraints=Constraints(pin={0: "gpu1"}))


def test_the_evaluator_names_broken_rules() -> None:
    graph = line(4)
    stage_of: dict[Any, int] = {i: min(i, 7 - i) for i in range(8)}
    placement: dict[Any, str] = {i: f"gpu{stage_of[i] % 2}" for i in range(8)}
    given: dict[str, Any] = {"order": ["gpu0", "gpu1", "gpu0", "gpu1"], "microbatches": 4}
    sound = evaluate(graph, GPUS, placement, stage_of=stage_of, schedule="interleaved_1f1b", **given)
    assert sound.feasible and sound.shape.is_chain
    vee = evaluate(graph, GPUS, placement, stage_of=stage_of, schedule="zbv", **given)
    assert "stage 2 is on gpu0, schedule 'zbv' has it on gpu1" in vee.violations
    swapped = {node: (2 if stage == 0 else 0 if stage == 2 else stage) for node, stage in stage_of.items()}
    against = evaluate(graph, GPUS, placement, stage_of=swapped, **given).violations
    assert any("sends tensors to" in words for words in against)
    with pytest.raises(WorkloadError, match="must be an integer from 0 to 3"):
        evaluate(graph, GPUS, placement, stage_of={**stage_of, 0: 7}, **given)
    with pytest.raises(WorkloadError, match="is on gpu0, the node on gpu1"):
        evaluate(graph, GPUS, {**placement, 0: "gpu1"}, stage_of=stage_of, **given)
