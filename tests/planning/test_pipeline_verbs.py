"""Starting from a plan with replicas and certifying it agree with solving for one."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import (
    Constraints,
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    Level,
    OptionError,
    certify,
    load_plan,
    solve,
)

CHAIN = Graph.from_arrays(
    {"gpu": [4.0, 16.0, 4.0, 4.0]},
    [(0, 1), (1, 2), (2, 3)],
    0.5,
    parameters=[1.0, 2.0, 8.0, 8.0],
    activations=1.0,
)
GPUS = Devices((DeviceKind("gpu", 4, memory=24.0, bandwidth=4.0),))


def test_replicas_pay_and_are_certified() -> None:
    """Layers 0 and 1 on three devices, 20.5 / 3 + 2 * 3 / (3 * 4) = 7.33; the others on one, 8.5."""
    plan = solve(CHAIN, GPUS, replicas=4)
    assert plan.value == 8.5 and [len(others) for others in plan.replicas.values()] == [2]
    assert plan.value < solve(CHAIN, GPUS).value
    assert plan.replicas and plan.status == "optimal"
    certificate = certify(CHAIN, GPUS, plan)
    assert certificate.value == certificate.bound == plan.value
    alone = certify(CHAIN, GPUS, plan.placement)
    assert alone.value > plan.value and alone.bound == solve(CHAIN, GPUS).value


def test_a_plan_with_replicas_is_a_start() -> None:
    """With no time left, the start is what comes back; not where fewer replicas are allowed."""
    plan = solve(CHAIN, GPUS, replicas=4)
    again = solve(CHAIN, GPUS, replicas=4, warm_start=plan, time_limit=1e-9)
    assert again.value == plan.value
    assert solve(CHAIN, GPUS, replicas=1, warm_start=plan).value == solve(CHAIN, GPUS).value


def test_a_schedule_changes_memory_value_and_certificate() -> None:
    """A stage in front of three others holds four samples; what fits once need not fit then."""
    tight = Devices((DeviceKind("gpu", 4, memory=11.0),))
    free, scheduled = solve(CHAIN, tight), solve(CHAIN, tight, schedule="1f1b")
    assert scheduled.value >= free.value
    certificate = certify(CHAIN, tight, scheduled.placement, schedule="1f1b", order=scheduled.stages)
    assert certificate.bound == scheduled.value
    with pytest.raises(InfeasibleError):
        solve(CHAIN, tight, schedule="gpipe", microbatches=12)


def test_a_plan_brings_its_order() -> None:
    """Nothing joins the two nodes, so that only the plan says that the GPU is last and holds one sample."""
    graph = Graph.from_arrays({"gpu": [1.0, 9.0], "cpu": [9.0, 1.0]}, parameters=[4.0, 1.0])
    devices = Devices((DeviceKind("gpu", 1, memory=4.0), DeviceKind("cpu", 1)))
    plan = solve(graph, devices, schedule="1f1b_async")
    assert plan.stages == ("cpu0", "gpu0")
    assert certify(graph, devices, plan, schedule="1f1b_async").bound == plan.value == 1.0


def test_a_free_split_keeps_to_neighbours_where_no_chain_does() -> None:
    """The maker stands between its two consumers; as a chain it would have to come first."""
    graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (0, 2)])
    gpus, demands = Devices((DeviceKind("gpu", 3),)), Constraints(neighbours_only=True, stages=3)
    plan = solve(graph, gpus, split="free", constraints=demands)
    assert certify(graph, gpus, plan, constraints=demands).bound == plan.value == 1.0
    with pytest.raises(InfeasibleError):
        solve(graph, gpus, constraints=demands)


def test_a_plan_with_replicas_is_written_and_read(tmp_path: object) -> None:
    path = f"{tmp_path}/plan.json"
    plan = solve(CHAIN, GPUS, replicas=4, constraints=Constraints(use_all_devices=True), microbatches=3)
    plan.save(path)
    back = load_plan(path)
    assert back.replicas == plan.replicas and back.value == plan.value
    assert back.options["constraints"] == {"use_all_devices": True}
    assert sum(load.nodes > 0 for load in plan.devices) == 4


@pytest.mark.parametrize(
    ("devices", "options", "message"),
    [
        (GPUS, {"replicas": 2, "method": "dp"}, "replicas mean nothing to method dp, only to pipeline"),
        (GPUS, {"replicas": 0}, "replicas = 0: must be an integer of at least 1"),
        (GPUS, {"schedule": "zigzag"}, "schedule = 'zigzag': must be None or one of inference, gpipe, 1f1b"),
        (GPUS, {"schedule": "gpipe"}, "schedule 'gpipe' needs microbatches"),
        (GPUS, {"objective": "batch"}, "objective 'batch' needs microbatches"),
        (
            GPUS,
            {"split": "free", "replicas": 2},
            "replicas mean nothing for objective 'throughput' with split 'free', only for throughput, batch,",
        ),
        (
            GPUS,
            {"objective": "gpipe", "replicas": 2},
            "replicas mean nothing for objective 'gpipe' with split 'chain', only for throughput,",
        ),
        (GPUS, {"constraints": {"stages": 2}}, "constraints = {'stages': 2}: must be a Constraints"),
        (
            GPUS,
            {"objective": "latency", "schedule": "1f1b"},
            "schedules mean nothing for objective 'latency'",
        ),
        (
            Devices((DeviceKind("gpu", 4),), levels=(Level("server", {"gpu": 2}, 2.0),)),
            {"method": "dpl"},
            "levels of devices mean nothing to method dpl",
        ),
    ],
)
def test_what_does_not_go_together(devices: Devices, options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as error:
        solve(CHAIN, devices, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize("split", ["chain", pytest.param("free", marks=pytest.mark.slow)])
def test_factors_scale_what_a_kind_pays(split: str) -> None:
    """Half the time and twice the transfers are the same as a graph with such numbers."""
    fast = Devices((DeviceKind("new", 2, times="gpu", time_factor=0.5, transfer_factor=2.0),))
    scaled = Graph.from_arrays({"new": CHAIN.time[0] / 2}, [(0, 1), (1, 2), (2, 3)], 1.0)
    plain = Devices((DeviceKind("new", 2),))
    assert np.isclose(solve(CHAIN, fast, split=split).value, solve(scaled, plain, split=split).value)
