"""A plan over unlike devices names those that it does not use, and what a plan on all of them takes."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Constraints, DeviceGroup, DeviceKind, Devices, Graph, GroupLink, solve
from tests.oracle_pipelines import best_pipeline

FAST, SLOW = DeviceKind("fast", 2), DeviceKind("slow", 1, time_factor=10.0, times="fast")
ALL = Constraints(use_all_devices=True)


def chain(count: int, cost: float = 0.0) -> Graph:
    return Graph.from_arrays({"fast": [1.0] * count}, [(v, v + 1) for v in range(count - 1)], cost)


def planned(graph: Graph, devices: Devices) -> tuple[float, list[str]]:
    """The value, and the notes on unused devices; kernels for a plan on all of them are compiled before."""
    if sum(kind.count for kind in devices.kinds) <= len(graph):
        solve(graph, devices, constraints=ALL)
    plan = solve(graph, devices)
    return plan.value, [note for note in plan.notes if note.startswith("not ")]


def unused(graph: Graph, devices: Devices) -> list[str]:
    return planned(graph, devices)[1]


def test_a_device_slower_than_the_bottleneck_is_not_worth_using() -> None:
    """Six layers on two devices take 3; the slow one takes 10 for one layer."""
    found = unused(chain(6), Devices((FAST, SLOW)))
    assert found == ["not worth using: slow0; the best plan that uses every device takes 10, 233.3% longer"]


def test_more_devices_than_layers() -> None:
    assert unused(chain(2), Devices((FAST, SLOW))) == ["not used: slow0; no plan uses every device"]


def test_a_group_behind_a_slow_link() -> None:
    """Two layers of 1 in one group take 2; sending 1 over the link takes 9 on both sides."""
    groups = DeviceGroup("near", {"fast": 1}), DeviceGroup("far", {"fast": 1})
    devices = Devices((FAST,), groups=groups, links=(GroupLink(9, ("near", "far")),))
    found = unused(chain(2, 1.0), devices)
    assert found == ["not worth using: fast1; the best plan that uses every device takes 10, 400.0% longer"]


def test_like_devices_and_cpus_are_not_named() -> None:
    cpu = DeviceKind("cpu", 4, times="fast", time_factor=50.0, pays_communication=False)
    assert unused(chain(1), Devices((FAST, cpu))) == []


@pytest.mark.slow
def test_the_value_on_all_devices_is_that_of_an_exhaustive_search() -> None:
    rng, told = np.random.default_rng(5), 0
    for _ in range(60):
        factors = rng.choice([1.0, 2.0, 9.0], 3)
        devices = Devices(
            tuple(DeviceKind(f"k{i}", 1, times="fast", time_factor=float(x)) for i, x in enumerate(factors))
        )
        time = rng.choice([0.5, 1.0, 3.0], 5)
        graph = Graph.from_arrays({"fast": time}, [(v, v + 1) for v in range(4)], 0.5)
        value, notes = planned(graph, devices)
        for note in notes:
            best = best_pipeline(graph, devices, ALL)
            assert best is not None
            told += 1
            longer = "every device takes as long" if best == pytest.approx(value) else f"takes {best:.6g},"
            assert longer in note
    assert told > 5
