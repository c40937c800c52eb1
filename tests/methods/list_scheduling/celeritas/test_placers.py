"""The four methods: memory and groups hold, no task is lost, estimates are kept, clusters come apart."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partitioner import (
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Transfers,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.methods.list_scheduling.celeritas.placers import (
    place_celeritas,
    place_cpd_topo,
    place_dfs_topo,
    place_order_place,
    taken_apart,
)
from partitioner.methods.list_scheduling.found import PlaceTasks
from partitioner.methods.list_scheduling.timing import makespan
from partitioner.methods.method import Settings
from partitioner.methods.placing import Placing
from tests.methods.list_scheduling.celeritas.by_hand import tasks_by_hand
from tests.methods.list_scheduling.celeritas.drawn import drawn, few_and_many
from tests.random_workloads import random_workload

PLACERS = {
    "dfs-topo": place_dfs_topo,
    "cpd-topo": place_cpd_topo,
    "order-place": place_order_place,
    "celeritas": place_celeritas,
}


@few_and_many(0)
@pytest.mark.parametrize("place", PLACERS.values(), ids=PLACERS)
def test_placements_obey_every_limit(place: PlaceTasks, first: int, count: int) -> None:
    found_none = several = 0
    for seed, tasks in drawn(first, count):
        placing = Placing(fusion_range=1 + seed % 5, fusion_memory=0.5, reserve_memory=seed % 3 > 0)
        found = place(tasks, Settings(placing=placing))
        if found is None:
            assert np.isfinite(tasks.limit).any() or not tasks.group_allowed.any(axis=0).all(), seed
            found_none += 1
            continue
        device, position = found.device, np.argsort(found.order)
        assert (np.bincount(device, tasks.size, len(tasks.limit)) <= tasks.limit).all(), seed
        assert np.isfinite(tasks.time[device, np.arange(tasks.n)]).all(), seed
        assert all(len(set(device[tasks.group == g].tolist())) == 1 for g in range(len(tasks.group_size)))
        assert (position[tasks.before.items] < position[tasks.before.owners()]).all(), seed
        if not tasks.contention and (tasks.time > 0).all():
            assert makespan(tasks, device, found.order) <= found.estimate * (1 + 1e-12), seed
        several += len(set(device.tolist())) > 1
    assert found_none < count * 2 / 5 and several > count * 2 / 25, (found_none, several)


def test_clusters_come_apart_where_they_fit_nowhere() -> None:
    """Devices of 5 with a task of 3 each: the cluster of 2 + 2 fits on neither, but one task on either."""
    tasks = tasks_by_hand(
        [1.0] * 4, {(0, 1): 1.0, (2, 3): 9.0, (1, 2): 1.0}, size=[3.0, 3.0, 2.0, 2.0], memory=5.0
    )
    for place in (place_order_place, place_celeritas):
        found = place(tasks, Settings(placing=Placing(fusion_range=2, fusion_memory=0.8)))
        assert found is not None
        assert np.bincount(found.device, tasks.size).tolist() == [5.0, 5.0]
        assert found.statistics["clusters"] == 4


def test_taken_apart_clusters_keep_their_place() -> None:
    cluster, single = np.array([0, 0, 1, 1, 2]), np.array([False, False, True, True, False])
    assert taken_apart(cluster, single).tolist() == [0, 0, 1, 2, 3]
    assert taken_apart(np.array([0, 1, 0, 1]), np.array([True, False, True, False])).tolist() == [0, 2, 1, 2]


def test_figures_of_the_fusion() -> None:
    """Ratio (5 + 1 + 4) / 4 before, 1 / 4 after fusing two pairs."""
    tasks = tasks_by_hand([1.0] * 4, {(0, 1): 5.0, (1, 2): 1.0, (2, 3): 4.0}, size=1.0)
    found = place_celeritas(tasks, Settings(placing=Placing(fusion_memory=0.5)))
    assert found is not None
    assert found.statistics == {"clusters": 2.0, "ccr": 2.5, "ccr_fused": 0.25}


@pytest.mark.parametrize(("first", "count"), [(70_000, 6), pytest.param(70_006, 19, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PLACERS)
def test_solve_and_evaluator_agree(name: str, first: int, count: int) -> None:
    plans = 0
    for seed, contention in product(range(first, first + count), (False, True)):
        graph, devices = random_workload(np.random.default_rng(seed), 12, 4)
        transfers = Transfers(contention=contention)
        try:
            plan = solve(graph, devices, "makespan", method=name, transfers=transfers, fusion_range=3)
        except (InfeasibleError, NoPlanFound, WorkloadError):
            continue
        again = evaluate(
            graph,
            devices,
            plan.placement,
            "makespan",
            transfers=transfers,
            execution_order=plan.execution_order,
        )
        assert again.feasible and again.value == pytest.approx(plan.value), seed
        assert plan.bound <= plan.value * (1 + 1e-9)
        plans += 1
    assert plans > count * 12 / 25, plans


def test_two_devices_are_better_than_one_where_transfers_are_cheap() -> None:
    """Two chains of 10 steps side by side: Adjusting sends one away, Order-Place never does."""
    edges = [(v, v + 2) for v in range(18)]
    graph = Graph.from_arrays({"accelerator": [1.0] * 20}, edges, 0.5, size=1.0)
    two = Devices.accelerated(2)
    plans = {name: solve(graph, two, "makespan", method=name, fusion_range=5) for name in PLACERS}
    assert plans["order-place"].value == 20.0
    assert plans["celeritas"].value == 10.0
