"""The difference of two plans: what moved, loads and memory, whatever equal devices are called."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, permutations, product
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from tests.analysis.explanations.recomputed import costs
from tests.random_workloads import random_workload


def line(n: int = 6) -> pt.Graph:
    """Nodes in a row of times 1, 2, ..., with transfers of 0.5 and sizes of 1."""
    times = [float(i + 1) for i in range(n)]
    return pt.Graph.from_arrays({"accelerator": times}, [(i, i + 1) for i in range(n - 1)], 0.5, size=1.0)


def placed(*devices: int) -> dict[int | str, str]:
    return {node: f"accelerator{number}" for node, number in enumerate(devices)}


def test_equal_devices_with_other_names_are_no_difference() -> None:
    found = pt.diff(line(), pt.Devices.accelerated(3), placed(0, 0, 0, 1, 1, 2), placed(2, 2, 2, 0, 0, 1))
    assert found.moved == () and found.value[0] == found.value[1]
    assert {each.device: each.renamed for each in found.devices} == {
        "accelerator0": "accelerator2",
        "accelerator1": "accelerator0",
        "accelerator2": "accelerator1",
    }
    assert "No node moved." in found.summary(160)


def test_names_count_where_links_differ() -> None:
    level = pt.Level("server", {"accelerator": 2}, 4.0)
    devices = pt.Devices((pt.DeviceKind("accelerator", 4),), levels=(level,))
    found = pt.diff(line(), devices, placed(0, 0, 0, 1, 1, 1), placed(1, 1, 1, 0, 0, 0))
    assert sum(len(each.nodes) for each in found.moved) == 6


def test_plans_of_pools_of_other_sizes() -> None:
    """Each plan is evaluated on its own devices; a new device keeps its name."""
    graph = line()
    one, two = (pt.solve(graph, pt.Devices.accelerated(count)) for count in (2, 3))
    found = pt.diff(graph, None, one, two)
    assert found.value == (one.value, two.value)
    assert sorted(each.device for each in found.devices) == ["accelerator0", "accelerator1", "accelerator2"]
    record = json.loads(found.to_json())
    assert record["value"] == [one.value, two.value] and record["node_count"] == 6
    assert repr(found).startswith("<PlanDifference: throughput")


def test_replicas_and_broken_rules_are_shown() -> None:
    graph, devices = line(), pt.Devices.accelerated(3, memory=5.0)
    before = pt.Solution(placed(0, 0, 0, 1, 1, 1))
    after = pt.Solution(placed(0, 0, 0, 1, 1, 1), replicas={"accelerator1": ("accelerator2",)})
    found = pt.diff(graph, devices, before, after)
    assert found.devices[1].copies == (1, 2) and "accelerator1 x1 then x2" in found.summary(160)
    broken = pt.diff(graph, devices, before, placed(0, 0, 0, 0, 0, 0))
    assert broken.violations == (0, 1) and "The second plan breaks 1 rule." in broken.summary(160)


def test_plans_for_different_objectives_are_refused() -> None:
    graph, devices = line(), pt.Devices.accelerated(2)
    one = pt.solve(graph, devices)
    other = replace(one, objective="gpipe")
    with pytest.raises(pt.OptionError, match="they are made for 'throughput' and 'gpipe'"):
        pt.diff(graph, devices, one, other)


@pytest.mark.parametrize("seed", range(40))
def test_random_placements(seed: int) -> None:
    """Loads are those of a recomputation; as few nodes move as with any names of equal devices."""
    rng = np.random.default_rng(seed)
    graph, devices = random_workload(rng, 6)
    kinds = tuple(replace(kind, memory=None) for kind in devices.kinds)
    devices = replace(devices, kinds=kinds)
    graph = replace(graph, allowed=np.ones_like(graph.allowed))
    one, two = ({node: str(rng.choice(devices.names)) for node in graph.ids} for _ in range(2))
    found = pt.diff(graph, devices, one, two)
    before, after = costs(graph, devices, one), costs(graph, devices, two)
    for each in found.devices:
        old, new = before.get(each.device), after.get(each.renamed)
        assert each.load == pytest.approx((old.load if old else 0.0, new.load if new else 0.0))
        assert each.memory == pytest.approx((old.memory if old else 0.0, new.memory if new else 0.0))
    moved = sum(len(group.nodes) for group in found.moved)
    names = {each.renamed: each.device for each in found.devices if each.renamed}
    assert moved == sum(one[node] != names[two[node]] for node in graph.ids)
    assert moved == fewest_moves(devices, one, two)


def fewest_moves(devices: pt.Devices, one: dict[Any, str], two: dict[Any, str]) -> int:
    """The fewest nodes that move over all ways to name equal devices."""
    of_kind = [[kind.device(i) for i in range(kind.count)] for kind in devices.kinds]
    return min(
        sum(one[node] != names[two[node]] for node in one)
        for orders in product(*(permutations(names) for names in of_kind))
        for names in [dict(zip(chain(*of_kind), chain(*orders), strict=True))]
    )
