"""A tensor of cost c keeps both ends of a direct link busy for c / 2, and is c on its way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.schedule import simulate
from tests.methods.slow_parameters import slow
from tests.random_pipelines import random_case

TRIALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("throughput", {}),
    ("throughput", {"split": "convex"}),
    ("throughput", {"split": "free"}),
    ("latency", {}),
    ("throughput", {"replicas": 2, "schedule": "1f1b", "microbatches": 4}),
    ("batch", {"microbatches": 3}),
    ("gpipe", {}),
    ("makespan", {"schedule": "1f1b", "microbatches": 4}),
)
CHAIN = pt.Graph.from_arrays({"gpu": [1.0, 1.0, 1.0]}, [(0, 1), (1, 2)], [0.5, 0.25])
PLACEMENT = {0: "gpu0", 1: "gpu1", 2: "gpu2"}


def gpus(count: int, route: str = "direct", **given: Any) -> pt.Devices:
    return pt.Devices((pt.DeviceKind("gpu", count),), route=route, **given)


def test_both_ends_pay_half() -> None:
    """By hand: 1 + 0.5 / 2, 1 + (0.5 + 0.25) / 2, 1 + 0.25 / 2; overlapped the processing alone."""
    found = pt.evaluate(CHAIN, gpus(3), PLACEMENT)
    assert [load.load for load in found.loads] == [1.25, 1.375, 1.125]
    overlapped = pt.evaluate(CHAIN, gpus(3, communication="overlapped"), PLACEMENT)
    assert [load.load for load in overlapped.loads] == [1.0, 1.0, 1.0]


def test_one_sample_waits_for_each_transfer_once() -> None:
    """As in a simulation: three times 1 and 0.5 + 0.25; the plan on one GPU takes 3."""
    found = pt.evaluate(CHAIN, gpus(3), PLACEMENT, "latency")
    assert found.value == 3.75 == simulate(CHAIN, gpus(3), PLACEMENT, "inference", 1).makespan
    assert pt.solve(CHAIN, gpus(3), "latency").value == 3.0


def test_a_simulated_transfer_takes_its_cost_once() -> None:
    """One sample: three times 1, and each tensor once, where host memory makes it twice."""
    times = {
        route: simulate(CHAIN, gpus(3, route), PLACEMENT, "inference", 1).makespan
        for route in ("direct", "host")
    }
    assert times == {"direct": 3.75, "host": 4.5}
    receivers = simulate(CHAIN, gpus(3), PLACEMENT, "inference", 1, links="direct")
    assert receivers.makespan == 3.75


@pytest.mark.parametrize("count", [25, slow(600)])
def test_direct_links_are_host_memory_at_half_the_cost_for_pipelines(count: int) -> None:
    """Value and bound of plans, and the evaluation of one plan under both."""
    rng, compared = np.random.default_rng(11), 0
    for seed in range(count):
        case = random_case(rng, (), most_nodes=6, most_devices=3)
        devices = replace(case.devices, route="host")
        if not all(kind.pays_communication for kind in devices.kinds if kind.count):
            continue
        half = replace(case.graph, cost=case.graph.cost / 2)
        objective, options = TRIALS[seed % len(TRIALS)]
        direct = replace(devices, route="direct")
        try:
            expected = pt.solve(half, devices, objective, time_limit=20, **options)
        except (pt.InfeasibleError, pt.OptionError, pt.WorkloadError) as error:
            with pytest.raises(type(error)):
                pt.solve(case.graph, direct, objective, time_limit=20, **options)
            continue
        found = pt.solve(case.graph, direct, objective, time_limit=20, **options)
        assert found.value == pytest.approx(expected.value) and found.bound == pytest.approx(expected.bound)
        loads = [
            pt.evaluate(graph, which, found.placement, "throughput").value
            for graph, which in ((case.graph, direct), (half, devices))
        ]
        assert loads[0] == pytest.approx(loads[1])
        compared += 1
    assert compared > count / 6


def test_operators_one_by_one_exchange_tensors_directly_whatever_the_route() -> None:
    values = {
        route: pt.evaluate(CHAIN, gpus(3, route), PLACEMENT, "makespan").value for route in ("host", "direct")
    }
    assert values["host"] == values["direct"] == 3.75


def test_a_cpu_has_no_direct_links() -> None:
    cpu = pt.DeviceKind("cpu", 1, pays_communication=False)
    kinds = (pt.DeviceKind("gpu", 2), cpu)
    rule = "route = 'direct': must be host where data of devices is in host memory: cpu"
    with pytest.raises(pt.WorkloadError, match=rule):
        pt.Devices(kinds, route="direct")
    assert pt.Devices((kinds[0], replace(cpu, count=0)), route="direct").transfer_factors == (0.5, 0.0)


def test_the_plan_says_how_tensors_move(tmp_path: Any) -> None:
    """A line of the summary, and the devices of its file."""
    plan = pt.solve(CHAIN, gpus(3))
    assert "transfers: from device to device, each end busy for half of the time" in plan.summary(200)
    plan.save(tmp_path / "plan.json")
    assert pt.load_plan(tmp_path / "plan.json").hardware == gpus(3)
    assert "transfers: through host memory" in pt.solve(CHAIN, gpus(3, "host")).summary(200)
