"""A message takes its latency in addition to its bytes: tensors that are sent, steps of an exchange."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.formats.devices import load_devices
from partitioner.schedule import simulate
from partitioner.workload.transfers import with_latency
from tests.oracle import best_values
from tests.random_workloads import uneven_workload

LATENCY = 0.25
TWO = pt.Devices.accelerated(2)


def late(devices: pt.Devices, latency: float = LATENCY) -> pt.Devices:
    """The devices with a latency."""
    return replace(devices, link_latency=latency)


@pytest.mark.parametrize(("route", "share"), [("host", 1.0), ("direct", 0.5)])
def test_each_end_pays_for_a_tensor_once(route: str, share: float) -> None:
    """Node 0 sends one tensor of cost 0.5 to two nodes of one device, and nothing along an edge of cost 0."""
    graph = pt.Graph.from_arrays({"accelerator": [1.0] * 4}, [(0, 1), (0, 2), (3, 1)], cost=[0.5, 0.5, 0.0])
    placement = {0: "accelerator0", 3: "accelerator0", 1: "accelerator1", 2: "accelerator1"}
    devices = replace(late(TWO), route=route)
    for load in pt.evaluate(graph, devices, placement).loads:
        assert load.load == 2 + share * (0.5 + LATENCY)


def test_edges_that_carry_different_tensors_still_do() -> None:
    """Though their costs are equal once a large latency is added to both."""
    costs = [0.5, float(np.nextafter(0.5, 1))]
    graph = pt.Graph.from_arrays({"accelerator": [1.0] * 3}, [(0, 1), (0, 2)], cost=costs)
    found = with_latency(graph, late(TWO, 1e6)).cost
    assert found[0] == 1e6 + 0.5 and found[0] < found[1] < found[0] * (1 + 1e-15)


@pytest.mark.parametrize(
    ("exchange", "microbatches", "expected"),
    [
        ("ring", 4, 2 * 2 * (6 / (3 * 2.0) + LATENCY) / 4),
        ("ring", None, 2 * (6 / (3 * 2.0) + LATENCY)),
        ("paper", 4, 2 * (6 / (3 * 2.0) + LATENCY)),
    ],
)
def test_each_step_of_an_exchange_pays(exchange: str, microbatches: int | None, expected: float) -> None:
    """Three replicas with weights of 6 over links of bandwidth 2: 4 steps once a batch, 2 for a sample."""
    graph = pt.Graph.from_arrays({"gpu": [9.0]}, size=6.0)
    devices = late(pt.Devices((pt.DeviceKind("gpu", 3, bandwidth=2.0),), exchange=exchange))
    given: dict[str, Any] = {"replicas": {"gpu0": ["gpu1", "gpu2"]}, "schedule": "inference"}
    found = pt.evaluate(graph, devices, {0: "gpu0"}, microbatches=microbatches, **given)
    assert found.loads[0].sync == pytest.approx(expected)
    assert found.value == pytest.approx(3 + expected)
    if microbatches:
        timeline = simulate(graph, devices, pt.Solution({0: "gpu0"}, given["replicas"]), "inference", 4)
        ends = 2 * 9 + (expected * 4 if exchange == "ring" else 2 * 3 * expected)
        assert timeline.makespan == pytest.approx(ends)


def test_without_weights_nothing_is_exchanged() -> None:
    graph = pt.Graph.from_arrays({"gpu": [9.0]})
    devices = late(pt.Devices((pt.DeviceKind("gpu", 3, bandwidth=2.0),)))
    assert pt.solve(graph, devices, replicas=3).value == 3.0


def test_a_latency_makes_fewer_replicas_best() -> None:
    """Of r replicas: 12 / r + (r - 1) / r + (r - 1) L, least at the root of (12 - 1) / L."""
    graph = pt.Graph.from_arrays({"gpu": [12.0]}, size=1.0)
    for latency, best in ((0.0, 8), (0.3, 6), (1.0, 3), (20.0, 1)):
        devices = late(pt.Devices((pt.DeviceKind("gpu", 8, bandwidth=1.0),)), latency)
        values = [12 / r + (r - 1) / r + (r - 1) * latency for r in range(1, 9)]
        plan = pt.solve(graph, devices, replicas=8)
        assert plan.value == pytest.approx(min(values)) and plan.status == "optimal"
        assert 1 + values.index(min(values)) == best == 1 + len(plan.replicas.get("gpu0", ()))


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 200), marks=pytest.mark.slow)])
def test_every_split_has_the_oracle_s_value(objective: str, seeds: range) -> None:
    """The oracle has costs that grew by hand, and devices without latency."""
    for seed in seeds:
        graph, devices = uneven_workload(np.random.default_rng(seed))
        grown = replace(graph, cost=np.array([c + LATENCY if c > 0 else 0.0 for c in graph.cost.tolist()]))
        for split, best in best_values(grown, devices, objective).items():
            if best is not None:
                found = pt.solve(graph, late(devices), objective, split=split, time_limit=20)
                assert found.value == pytest.approx(best) and found.bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("objective", ["throughput", "batch", "latency", "makespan"])
def test_a_latency_is_a_larger_cost_for_every_objective(objective: str) -> None:
    graph = pt.Graph.from_arrays({"accelerator": [9.0, 9.0, 0.5]}, [(0, 2), (1, 2)], cost=0.25)
    devices = pt.Devices.accelerated(3)
    run = {"schedule": "inference", "microbatches": 3} if objective in ("batch", "throughput") else {}
    grown = replace(graph, cost=graph.cost + LATENCY)
    one = pt.solve(graph, late(devices), objective, **run)  # type: ignore[arg-type]
    other = pt.solve(grown, devices, objective, **run)  # type: ignore[arg-type]
    assert (one.value, one.bound) == (other.value, other.bound)
    assert one.value > pt.solve(graph, devices, objective, **run).value  # type: ignore[arg-type]


def test_methods_that_cannot_add_it_up_refuse_it() -> None:
    """Those that choose among alternatives add up exchanges node by node."""
    graph = pt.Graph.from_arrays({"gpu": [2.0, 3.0]}, [(0, 1)], cost=0.5, size=1.0)
    devices = late(pt.Devices((pt.DeviceKind("gpu", 3, bandwidth=2.0),)))
    with pytest.raises(
        pt.OptionError, match="latencies in exchanges of weights mean nothing to method alternatives"
    ):
        pt.solve(graph, devices, method="alternatives", replicas=2)
    assert pt.solve(graph, devices, replicas=2).value < 5


def test_files_keep_it(tmp_path: Path) -> None:
    (file := tmp_path / "devices.json").write_text(
        json.dumps({"kinds": [{"name": "gpu", "count": 2}], "link_latency": 1e-3})
    )
    devices = load_devices(file)
    assert devices.link_latency == 1e-3 and devices.as_dict()["link_latency"] == 1e-3
    assert devices.text != replace(devices, link_latency=0.0).text and "latency" not in TWO.text
    assert "latency" not in TWO.as_dict() and "latency" not in TWO.transfer_words
    assert "0.001 of latency for every message" in devices.transfer_words
    with pytest.raises(pt.WorkloadError, match="link_latency = -1: must be"):
        late(TWO, -1)
