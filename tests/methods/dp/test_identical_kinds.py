"""Kinds that differ in their names only are one kind to the search, and values are those of one kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    InfeasibleError,
    NoPlanFound,
    Plan,
    WorkloadError,
    evaluate,
    solve,
)
from partitioner.methods.dp.identical_kinds import identical_kinds, merged_kinds
from partitioner.problem.contract import contract
from partitioner.problem.variants import ChainProblem
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value
from tests.random_workloads import fitted, uneven_workload


def with_twins(rng: np.random.Generator, devices: Devices) -> Devices:
    """Return the devices, of each kind some under another name."""
    kinds = []
    for kind in devices.kinds:
        first = int(rng.integers(kind.count + 1))
        twin = replace(kind, name=f"{kind.name} twin", times=kind.row, count=kind.count - first)
        kinds += [replace(kind, count=first), twin]
    return replace(devices, kinds=tuple(kinds[i] for i in rng.permutation(len(kinds))))


def plan_of(graph: Graph, devices: Devices, method: str) -> Plan | None:
    try:
        return solve(graph, devices, method=method)
    except (WorkloadError, InfeasibleError, NoPlanFound) as error:
        assert method == "dpl" or not isinstance(error, NoPlanFound)
        return None


@pytest.mark.parametrize("seeds", [range(20), slow(range(20, 400))])
@pytest.mark.parametrize("method", ["dp", "dpl"])
def test_twins_change_no_value(seeds: range, method: str) -> None:
    """The value is that of the oracle for dp, and plans are plans on the kinds as they were given."""
    feasible = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, 8, 4)
        twins = with_twins(rng, devices)
        plan, best = plan_of(graph, twins, method), best_chain_value(graph, devices)
        assert (plan is None) == (best is None) or method == "dpl", seed
        if plan is None or best is None:
            continue
        feasible += 1
        assert evaluate(graph, twins, plan.placement).feasible, seed
        assert plan.value >= best * (1 - 1e-9) - 1e-12, seed
        if method == "dp":
            assert plan.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
            again = solve(graph, twins, warm_start=plan, method=method)
            assert again.value == plan.value
    assert feasible > len(seeds) // 2


@pytest.mark.parametrize(
    ("changed", "classes"),
    [
        ({}, [0, 0]),
        ({"memory": 3.0}, [0, 1]),
        ({"time_factor": 2.0}, [0, 1]),
        ({"transfer_factor": 2.0}, [0, 1]),
        ({"pays_communication": False}, [0, 1]),
        ({"count": 3}, [0, 0]),
    ],
)
def test_only_identical_kinds_are_merged(changed: dict[str, float], classes: list[int]) -> None:
    graph = Graph.from_arrays({"a": [1.0, 2.0, 3.0]}, [(0, 1), (1, 2)], cost=1.0, size=1.0)
    kind = DeviceKind("a", 1)
    twin = replace(kind, name="b", times="a", **changed)  # type: ignore[arg-type]
    devices = Devices((kind, twin))
    problem = contract(fitted(graph, devices), devices)
    assert isinstance(problem, ChainProblem)
    group = identical_kinds(problem)
    assert group.tolist() == classes
    assert merged_kinds(problem, group).count.sum() == problem.count.sum()
