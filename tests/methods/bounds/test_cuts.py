"""The bound that counts torn nets is never above the best chain, and it counts some."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph
from partitioner.methods.bounds.cuts import CutBound, holds
from partitioner.methods.bounds.relaxation import relax
from partitioner.problem.variants import ChainProblem
from tests.contracted import contract_to
from tests.methods.slow_parameters import slow
from tests.oracle import best_chain_value

Case = tuple[Graph, Devices]


def near_line(rng: np.random.Generator) -> Case:
    """Up to nine nodes in two or three lanes with edges over short distances, and up to four accelerators."""
    n = int(rng.integers(4, 10))
    reach = int(rng.integers(2, 4))
    edges = [
        (u, v)
        for u in range(n)
        for v in range(u + 1, min(u + reach + 1, n))
        if v == u + reach - 1 or rng.random() < 0.4
    ]
    cost = rng.choice([0.0, 0.5, 1.0, 2.0], n) * rng.choice([0.3, 1.0])
    time = rng.choice([1.0, 1.0, 2.0, 3.0], n)
    graph = Graph.from_arrays(
        {"accelerator": time.tolist(), "cpu": (time * rng.choice([1.5, 4.0, 10.0])).tolist()},
        edges,
        [float(cost[u]) for u, _ in edges],
        color=[int(rng.integers(n)) if rng.random() < rng.choice([0.0, 0.2]) else None for _ in range(n)],
    )
    kinds = (
        DeviceKind("accelerator", int(rng.integers(2, 5)), transfer_factor=float(rng.choice([1.0, 0.5]))),
        DeviceKind("cpu", int(rng.integers(0, 2)), pays_communication=False),
    )
    return graph, Devices(kinds)


def check(seed: int) -> tuple[float, float, float]:
    """The relaxation, the bound from several values, and the optimum."""
    rng = np.random.default_rng(seed)
    graph, devices = near_line(rng)
    problem = contract_to(ChainProblem, graph, devices)
    best = best_chain_value(graph, devices)
    assert best is not None
    if not holds(problem):
        assert problem.nets.cost.sum() == 0
        return best, best, best
    least = relax(problem).bound
    bound = CutBound(problem)
    for value in (best, best * float(rng.uniform(1.0, 1.5))):
        raised = bound.rise(least, value)
        assert least * (1 - 1e-9) <= raised <= best * (1 + 1e-9), f"seed {seed}: {raised} above {best}"
        assert min(value, bound.least(value)) <= best * (1 + 1e-9), f"seed {seed}"
    return least, bound.rise(least, best), best


@pytest.mark.parametrize("seeds", [range(15), slow(range(15, 640))])
def test_never_above_the_best_chain(seeds: range) -> None:
    """Some are proven by it that the relaxation leaves open."""
    found = [check(seed) for seed in seeds]
    assert sum(raised > least * 1.02 for least, raised, _ in found) > len(found) // 4
    assert sum(raised > best * (1 - 1e-6) > least for least, raised, best in found) > len(found) // 100


def test_a_path_is_paid_on_both_sides() -> None:
    """Three stages do 9 of work and four transfers of 1, 13 in all; the best chain has a load of 5."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 9}, [(v, v + 1) for v in range(8)], [1.0] * 8)
    problem = contract_to(ChainProblem, graph, Devices.accelerated(3, cpus=0))
    assert 13 / 3 - 0.01 < CutBound(problem).rise(3.0, 5.0) <= 5.0


def test_what_it_does_not_hold_for() -> None:
    """Overlapped transfers, two CPUs, and two kinds that pay."""
    graph = Graph.from_arrays({"accelerator": [1.0] * 3, "cpu": [2.0] * 3}, [(0, 1), (1, 2)], [1.0, 1.0])
    line = DeviceKind("accelerator", 2), DeviceKind("cpu", 1, pays_communication=False)
    two = DeviceKind("accelerator", 2), DeviceKind("cpu", 2, pays_communication=False)
    paying = DeviceKind("accelerator", 2), DeviceKind("cpu", 1)
    for devices, expected in (
        (Devices(line), True),
        (Devices(line, "overlapped"), False),
        (Devices(two), False),
        (Devices(paying), False),
    ):
        assert holds(contract_to(ChainProblem, graph, devices)) == expected


def test_it_ends_when_it_is_told() -> None:
    """With what is known by then, which is no lower than before."""
    graph, devices = near_line(np.random.default_rng(1))
    problem = contract_to(ChainProblem, graph, devices)
    assert CutBound(problem, lambda: True).rise(0.5, 9.0) == 0.5
