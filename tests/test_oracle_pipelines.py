"""The oracle of pipelines is that of chains where nothing is extended, and right where hands can count."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph
from partitioner.workload.constraints import Constraints
from partitioner.workload.levels import Level
from tests.oracle import best_chain_value
from tests.oracle_pipelines import best_pipeline, layouts
from tests.random_pipelines import FEATURES, random_case


@pytest.mark.parametrize("seed", range(40))
def test_without_extensions_it_is_the_oracle_of_chains(seed: int) -> None:
    case = random_case(np.random.default_rng(seed), (), most_nodes=7, most_devices=3)
    expected, found = best_chain_value(case.graph, case.devices), best_pipeline(case.graph, case.devices)
    assert (found is None) == (expected is None)
    assert found is None or expected is None or math.isclose(found, expected, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("features", "cases"),
    [
        (FEATURES, 9),
        *(
            pytest.param(some, 24, marks=pytest.mark.slow)
            for some in (*((one,) for one in FEATURES), FEATURES)
        ),
    ],
)
def test_a_third_of_the_random_cases_has_a_plan_and_extensions_count(
    features: tuple[str, ...], cases: int
) -> None:
    """Each extension changes what is best in some cases."""
    found, changed = 0, 0
    for seed in range(cases):
        case = random_case(np.random.default_rng(seed), features)
        best = best_pipeline(**vars(case))
        found += best is not None
        kinds = [replace(kind, time_factor=1.0, transfer_factor=1.0) for kind in case.devices.kinds]
        plain = Devices(tuple(kinds), case.devices.communication)
        changed += best != best_pipeline(case.graph, plain)
    assert found >= cases // 3
    assert changed >= cases // 8


def lonely(time: float = 6.0) -> Graph:
    return Graph.from_arrays({"gpu": [time]}, size=4.0)


def test_replicas_share_the_work_and_exchange_weights() -> None:
    """6 / 3 + (3 - 1) * 4 / (3 * 2) on three devices, 6 / 2 + (2 - 1) * 4 / (2 * 2) on two."""
    devices = Devices((DeviceKind("gpu", 3, bandwidth=2.0),))
    assert best_pipeline(lonely(), devices) == 6
    assert best_pipeline(lonely(), devices, replicas=2) == 4
    assert best_pipeline(lonely(), devices, replicas=3) == pytest.approx(2 + 8 / 6)


def test_layouts_of_two_servers() -> None:
    """Per server one device, both together or apart, or none; then both servers for one stage."""
    devices = Devices((DeviceKind("gpu", 4),), levels=(Level("server", {"gpu": 2}, 3.0),))
    found = [tuple(stage.devices for stage in stages) for stages in layouts(devices, 4, 4)]
    in_server = [0, 1, 1, 1]
    assert len(found) == len(set(found)) == (1 + sum(in_server)) ** 2 - 1 + 1
    assert ((0, 1, 2, 3),) in found
    assert ((1, 2),) not in found


def test_pins_to_devices_choose_among_equals() -> None:
    """Two nodes pinned to two devices of one kind: one stage on both needs two replicas."""
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], 0.25)
    devices = Devices((DeviceKind("gpu", 2),))
    apart = Constraints(pin={0: "gpu1", 1: "gpu0"})
    assert best_pipeline(graph, devices, apart) == 1.25
    assert best_pipeline(graph, devices, apart, replicas=2) == 1
    assert best_pipeline(graph, devices, Constraints(pin={0: "gpu1", 1: "gpu1"})) == 2
    assert best_pipeline(graph, devices, Constraints(pin={0: "gpu1", 1: "gpu1"}, stages=2)) is None


def test_a_batch_fills_and_drains() -> None:
    """Stages of load 1 and 2, three samples: 1 + 2 + 2 * 2."""
    graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)])
    devices = Devices((DeviceKind("gpu", 2),))
    found = best_pipeline(graph, devices, Constraints(stages=2), microbatches=3, objective="batch")
    assert found == 7
