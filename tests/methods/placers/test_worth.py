"""What the four placers find keeps every rule, lies between the bounds, and is what the evaluator says."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.methods.method import Settings
from partitioner.methods.placers.found import Found
from partitioner.methods.placers.m_etf import place_etf, place_m_etf
from partitioner.methods.placers.m_sct import place_m_sct
from partitioner.methods.placers.m_topo import place_m_topo
from partitioner.methods.placers.timing import makespan
from partitioner.problem.tasks import Tasks
from tests.methods.placers.small_tasks import some_tasks
from tests.random_workloads import in_known_order, random_workload

PLACERS = {"etf": place_etf, "m-topo": place_m_topo, "m-etf": place_m_etf, "m-sct": place_m_sct}
METHODS = tuple(PLACERS)


def least(tasks: Tasks) -> float:
    """Longest path and mean load on the fastest devices."""
    fastest = tasks.time.min(axis=0)
    end = np.zeros(tasks.n)
    for v in range(tasks.n):
        end[v] = fastest[v] + max((end[u] for u in tasks.before.row(v)), default=0.0)
    return float(max(end.max(), fastest.sum() / len(tasks.limit)))


def most(tasks: Tasks, found: Found) -> float:
    """All times and transfers one after another: until the end one of them is under way."""
    total = float(tasks.time[found.device, np.arange(tasks.n)].sum())
    sent = set()
    for v, u, tensor in zip(
        tasks.before.owners().tolist(), tasks.before.items.tolist(), tasks.before_tensor.tolist(), strict=True
    ):
        s, d = found.device[[u, v]].tolist()
        if s != d and (tensor, d) not in sent:
            sent.add((tensor, d))
            total += float(tasks.slope[s, d] * tasks.cost[tensor] + tasks.intercept[s, d])
    return total


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", METHODS)
def test_between_the_bound_and_everything_in_a_row(name: str, count: int) -> None:
    placed = 0
    for _, tasks in some_tasks(50_000, count):
        found = PLACERS[name](tasks, Settings())
        if found is None:
            continue
        placed += 1
        value = makespan(tasks, found.device, found.order)
        assert least(tasks) - 1e-9 <= value <= most(tasks, found) + 1e-9
        assert (np.bincount(found.device, tasks.size, len(tasks.limit)) <= tasks.limit).all()
    assert placed > count * 5 / 12


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["etf", "m-etf", "m-sct"])
def test_without_contention_the_estimate_is_kept(name: str, count: int) -> None:
    """Tensors leave when made, and devices run in the order of the starts: nothing is later than planned."""
    placed = 0
    for _, tasks in some_tasks(60_000, count):
        found = None if tasks.contention else PLACERS[name](tasks, Settings())
        if found is not None:
            placed += 1
            assert makespan(tasks, found.device, found.order) <= found.estimate + 1e-9
    assert placed > count / 5


def test_m_topo_always_finds_room_where_memory_has_no_limit() -> None:
    """The cap leaves a device only behind more than an even share, of fractions, too."""
    spread = 0
    for seed, given in some_tasks(70_000, 300):
        size = np.random.default_rng(seed).random(given.n)
        limit, time = np.full_like(given.limit, np.inf), np.ones_like(given.time)
        tasks = replace(given, size=size, limit=limit, time=time)
        found = place_m_topo(tasks, Settings())
        assert found is not None
        used = np.bincount(found.device, size, len(limit))
        assert (used <= size.sum() / len(limit) + tasks.group_size.max() + 1e-9).all()
        spread += len(set(found.device.tolist())) > 1
    assert spread > 100


@pytest.mark.parametrize(("first", "count"), [(0, 96), pytest.param(1000, 1280, marks=pytest.mark.slow)])
def test_solve_believes_them(first: int, count: int) -> None:
    """With every option, on random workloads: the evaluator confirms the value, or memory is tight."""
    plans, failed = 0, 0
    options = list(product(METHODS, ("none", "coplace"), (False, True), (False, True)))
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = random_workload(rng)
        method, grouper, fuse, contention = options[seed % len(options)]
        grouping: dict[str, Any] = {} if method == "etf" else {"grouper": grouper, "fuse": fuse}
        try:
            plan = pt.solve(
                in_known_order(graph),
                devices,
                "makespan",
                method=method,
                **grouping,
                uniform=bool(seed % 3),
                reserve_memory=bool(seed % 5),
                transfers=pt.Transfers(contention=contention),
            )
        except (pt.InfeasibleError, pt.NoPlanFound, pt.WorkloadError):
            failed += 1
            continue
        plans += 1
        assert plan.bound <= plan.value
    assert plans > count * 9 / 16


def test_options_are_checked() -> None:
    graph = pt.Graph.from_arrays({"accelerator": [1.0]}, [], [])
    with pytest.raises(pt.OptionError, match="uniform = 1: must be True or False"):
        pt.solve(graph, pt.Devices.accelerated(1), "makespan", method="m-topo", uniform=1)
