"""Every convex split that is no chain costs at least the bound, which is infinite only if there is none."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, solve
from partitioner.methods.bounds.cyclic import least_cyclic
from partitioner.methods.bounds.relaxation import relax
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.variants import PartsProblem
from partitioner.workload.devices import COMMUNICATION_MODELS
from tests.contracted import of_type
from tests.methods.slow_parameters import slow
from tests.oracle import best_values, is_chain, is_contiguous
from tests.oracle_placements import feasible_placements, values
from tests.random_workloads import fitted

Edges = list[tuple[int, int]]


def bound_of(graph: Graph, devices: Devices) -> tuple[PartsProblem, float]:
    """The problem for convex splits, and the bound."""
    problem = of_type(PartsProblem, contract(graph, devices, Goal(split="convex")))
    return problem, least_cyclic(problem, relax(problem))


def crossed(rng: np.random.Generator) -> tuple[Graph, Devices]:
    """A node, two paths with edges between them, and a node again; now and then something is beside it."""
    first, last = rng.integers(1, 4, 2).tolist()
    n = first + last + 2
    paths = [range(1, first + 1), range(first + 1, n - 1)]
    edges: set[tuple[int, int]] = {edge for path in paths for edge in pairwise([0, *path, n - 1])}
    edges |= {(u, v) for u, v in product(paths[0], paths[1]) if rng.random() < 0.2}
    if rng.random() < 0.2:
        edges.discard((0, 1))
    time = rng.integers(1, 6, n).astype(float)
    time[[0, -1]] *= rng.choice([1.0, 5.0])
    graph = Graph.from_arrays(
        {"accelerator": time.tolist(), "cpu": (time * 2).tolist()},
        sorted(edges),
        (rng.random(len(edges)) * rng.choice([0.01, 1.0])).tolist(),
        size=rng.integers(1, 4, n).tolist(),
        color=[int(rng.integers(3)) if rng.random() < 0.1 else None for _ in range(n)],
    )
    room = float(rng.choice([4.0, 9.0])) if rng.random() < 0.3 else None
    kinds = (
        DeviceKind("accelerator", int(rng.integers(2, 4)), memory=room),
        DeviceKind("cpu", int(rng.integers(0, 2)), pays_communication=False),
    )
    return graph, Devices(kinds, str(rng.choice(["sequential", *COMMUNICATION_MODELS])))


def check(seed: int) -> tuple[float, float]:
    """The bound, and the least value of what it speaks of."""
    graph, devices = crossed(np.random.default_rng(seed))
    placements = feasible_placements(fitted(graph, devices), devices)
    convex = is_contiguous(placements, ~graph.backward, list(range(len(placements.kinds))))
    cyclic = values(placements.only(convex & ~is_chain(placements)), "throughput")
    bound = bound_of(fitted(graph, devices), devices)[1]
    least = float(cyclic.min(initial=np.inf))
    assert bound <= least * (1 + 1e-9), f"seed {seed}"
    return bound, least


@pytest.mark.parametrize("seeds", [range(100), slow(range(100, 800))])
def test_never_above_a_split_with_a_cycle(seeds: range) -> None:
    """There are such splits, blocks without one, and graphs of which nothing is known."""
    found = [check(seed) for seed in seeds]
    assert sum(bound == np.inf for bound, _ in found) > len(found) // 10
    assert sum(np.isfinite(least) and bound > 0.5 * least for bound, least in found) > len(found) // 50
    assert sum(bound == 0 for bound, _ in found) > len(found) // 100


def test_a_series_of_blocks_is_proven_by_its_best_chain() -> None:
    """The oracle agrees."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)]
    graph = Graph.from_arrays({"accelerator": [3, 5, 2, 4, 1, 6, 2]}, edges, [1.0] * len(edges))
    devices = Devices.accelerated(3, cpus=0)
    assert bound_of(fitted(graph, devices), devices)[1] == np.inf
    plan = solve(graph, devices, method="ip", split="convex")
    assert plan.stop_reason == "optimal"
    assert plan.value == best_values(graph, devices)["convex"]


def test_nothing_is_known_where_parts_need_not_be_contiguous() -> None:
    graph, _ = crossed(np.random.default_rng(0))
    loose = Goal(split="convex", contiguous_cpus=False)
    for goal in (Goal(split="free"), loose):
        both = Devices.accelerated(2, cpus=1)
        problem = of_type(PartsProblem, contract(fitted(graph, both), both, goal))
        assert least_cyclic(problem, relax(problem)) == 0.0
