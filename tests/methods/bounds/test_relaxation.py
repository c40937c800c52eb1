"""The bound lies below every placement, close to the linear program it is the dual of."""

from __future__ import annotations

import numpy as np
import pytest
from ortools.linear_solver import pywraplp

from partitioner import WorkloadError
from partitioner.methods.bounds.relaxation import relax
from partitioner.problem.contract import contract
from partitioner.problem.problem import Problem
from partitioner.workload.workload import Workload
from tests.methods.slow_parameters import slow
from tests.random_workloads import random_workload


def fractional_assignment(problem: Problem) -> float:
    """The optimum of the linear program: infinity if not even fractions of supernodes fit."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    largest = solver.NumVar(0, solver.infinity(), "T")
    share = {
        (k, v): solver.NumVar(0, 1, "")
        for k in np.flatnonzero(problem.count).tolist()
        for v in range(problem.n)
        if problem.allowed[k, v]
    }
    for v in range(problem.n):
        solver.Add(solver.Sum([x for (_, u), x in share.items() if u == v]) == 1)
    for k in np.flatnonzero(problem.count).tolist():
        mine = [(v, x) for (i, v), x in share.items() if i == k]
        work = solver.Sum([float(problem.work()[k, v]) * x for v, x in mine])
        solver.Add(work <= int(problem.count[k]) * largest)
        if np.isfinite(problem.memory[k]):
            room = float(problem.count[k] * problem.memory[k])
            solver.Add(solver.Sum([float(problem.size[v]) * x for v, x in mine]) <= room)
    solver.Minimize(largest)
    status = solver.Solve()
    return float(largest.solution_value()) if status == solver.OPTIMAL else np.inf


@pytest.mark.parametrize("seeds", [range(60), slow(range(60, 300))])
def test_between_nothing_and_the_linear_program(seeds: range) -> None:
    """Never above the fractional optimum (or the heaviest supernode), mostly within a percent of it."""
    close = cases = 0
    for seed in seeds:
        graph, devices = random_workload(np.random.default_rng(seed), 12, 5)
        try:
            problem = contract(Workload(graph, devices).graph, devices)
        except WorkloadError:
            continue
        if not problem.allowed[problem.count > 0].any(axis=0).all():
            continue
        exact = fractional_assignment(problem)
        heaviest = float(problem.work()[problem.count > 0].min(axis=0).max())
        bound = relax(problem).bound
        assert bound <= max(exact, heaviest) * (1 + 1e-6) + 1e-9, seed
        cases += 1
        close += bound >= min(exact, 1e9) * 0.99 - 1e-9
    assert cases > len(seeds) * 2 / 3
    assert close > 0.9 * cases


def test_memory_alone_can_prove_infeasibility() -> None:
    """Prices on memory alone turn an overfull workload into an infinite bound."""
    for seed in range(50):
        graph, devices = random_workload(np.random.default_rng(seed), 8, 3)
        limits = [k.count * k.memory for k in devices.kinds if k.count and k.memory is not None]
        unlimited = any(k.count and k.memory is None for k in devices.kinds)
        if not unlimited and graph.size.sum() > sum(limits) * 1.01:
            assert relax(contract(graph, devices)).bound == np.inf


@pytest.mark.parametrize("count", [30, slow(100)])
def test_parts_need_no_more_than_their_devices_offer(count: int) -> None:
    """The weights of a placement's parts never exceed the capacity of the devices they are on."""
    rng = np.random.default_rng(0)
    for seed in range(count):
        graph, devices = random_workload(np.random.default_rng(seed), 8, 4)
        problem = contract(graph, devices)
        relaxation = relax(problem)
        kind = int(rng.choice(np.flatnonzero(problem.count)))
        part = np.flatnonzero(problem.allowed[kind] & (rng.random(problem.n) < 0.5))
        if problem.size[part].sum() > problem.memory[kind]:
            continue
        load = float(problem.work()[kind, part].sum())
        one = np.eye(len(problem.count), dtype=np.int64)[kind]
        capacity = float(relaxation.capacity(load, one, problem.memory))
        assert relaxation.weight[part].sum() <= capacity * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("counts", [(1, 0, 0), (0, 2, 0), (1, 1, 1)])
def test_one_supernode(counts: tuple[int, int, int]) -> None:
    """With a single supernode the bound is its fastest time."""
    from partitioner import DeviceKind, Devices, Graph

    graph = Graph.from_arrays({"gpu": [3.0], "npu": [2.0], "cpu": [7.0]})
    kinds = tuple(DeviceKind(name, c) for name, c in zip(graph.kinds, counts, strict=True))
    fastest = min(t for t, c in zip((3.0, 2.0, 7.0), counts, strict=True) if c)
    assert relax(contract(graph, Devices(kinds))).bound == fastest
