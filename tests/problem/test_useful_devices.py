"""The devices that stand for all others suffice: no plan on the others is better."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from partitioner import DeviceGroup, DeviceKind, Devices, Graph, GroupLink, Level, Transfers, solve
from partitioner.problem.useful_devices import interchangeable, useful_devices
from tests.oracle_makespan import least_makespan
from tests.random_pipelines import random_case
from tests.random_workloads import in_known_order


def test_the_best_device_of_a_kind_may_be_the_last_one() -> None:
    graph = Graph.from_arrays({"a": [1.0, 9.0], "b": [4.0, 1.0]}, [(0, 1)], cost=1.0)
    devices = Devices(
        (DeviceKind("a", 3), DeviceKind("b", 1)),
        groups=(
            DeviceGroup("s0", {"a": 1}),
            DeviceGroup("s1", {"a": 1, "b": 1}, 5.0),
            DeviceGroup("s2", {"a": 1}),
        ),
        links=(GroupLink(5.0, ("s0", "s1")), GroupLink(1.0)),
    )
    plan = solve(graph, devices, "makespan")
    assert (plan.value, plan.status, plan.placement[0]) == (3.0, "optimal", "a2")


@pytest.mark.parametrize("grouping", ["levels", "groups"])
def test_every_set_of_devices_has_an_image_with_the_same_links(grouping: str) -> None:
    """Among the useful devices, for each set of at most two and three devices."""
    for seed in range(40):
        devices = random_case(np.random.default_rng(seed), ["kinds", grouping], 2, 7).devices
        slope, _ = Transfers().times(devices)
        kind = np.repeat(np.arange(len(devices.kinds)), [each.count for each in devices.kinds])
        for most in (2, 3):
            kept = set(useful_devices(devices, Transfers(), most).tolist())
            known = {signature(slope, kind, each) for each in combinations(sorted(kept), most)}
            for each in combinations(range(len(kind)), most):
                assert signature(slope, kind, each) in known, (seed, each)


def signature(slope: np.ndarray, kind: np.ndarray, devices: tuple[int, ...]) -> tuple[object, ...]:
    """Return what tells sets of two or three devices apart: kinds, and the slope of each pair."""
    pairs = [(sorted((int(kind[d]), int(kind[e]))), float(slope[d, e])) for d, e in combinations(devices, 2)]
    return tuple(sorted(int(kind[d]) for d in devices)), tuple(sorted(map(repr, pairs)))


@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 80), marks=pytest.mark.slow)])
def test_no_placement_on_any_devices_is_better(seeds: range, matrix: bool) -> None:
    compared = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, matrix])
        case = random_case(rng, ["kinds", str(rng.choice(["levels", "groups"]))], 3, 5)
        count = len(case.devices.names)
        slope = rng.choice([0.5, 1.0, 2.0], (count, count)).tolist() if matrix else None
        graph, transfers = in_known_order(case.graph), Transfers(slope, contention=bool(rng.random() < 0.5))
        best = least_makespan(graph, case.devices, transfers)
        if best is not None and count > len(graph):
            plan = solve(graph, case.devices, "makespan", transfers=transfers, workers=1)
            compared += 1
            assert plan.bound <= best * (1 + 1e-9), seed
            assert plan.status != "optimal" or plan.value == pytest.approx(best, rel=1e-9), seed
    assert compared > len(seeds) / 4


def test_members_are_interchangeable_if_no_entry_of_a_table_changes() -> None:
    table = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    assert interchangeable(range(3), table) == [[0, 1], [2]]
    table[0, 1] = 3.0
    assert interchangeable(range(3), table) == [[0], [1], [2]]


def test_servers_of_a_rack_stand_for_all_servers() -> None:
    levels = (Level("server", {"gpu": 2}, 2.0), Level("rack", {"gpu": 8}, 5.0))
    devices = Devices((DeviceKind("gpu", 32),), levels=levels)
    assert useful_devices(devices, Transfers(), 2).tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
