"""The bound by the supernode whose nets cost most is exact for a star, and no placement is below it."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.bounds.star import star_bound
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from tests.methods.slow_parameters import slow
from tests.oracle import best_values
from tests.random_problems import cases


@pytest.mark.parametrize(("first", "count"), [(0, 300), slow(1000, 4000)])
def test_no_placement_is_below_it(first: int, count: int) -> None:
    """Whatever the devices, the constraints and the measure; nor is it below the relaxation's."""
    raised = compared = 0
    for case in cases(first, count):
        problem = case.problem("free")
        relaxation = relax(problem)
        bound = star_bound(problem, relaxation)
        assert bound >= relaxation.bound, case.seed
        best = best_values(case.graph, case.devices)["free"]
        if best is None or problem.measure.passes == 2:
            continue
        assert bound <= best * (1 + 1e-9), case.seed
        compared += 1
        raised += bound > relaxation.bound
    assert compared > count / 10
    assert raised > compared / 20


@pytest.mark.parametrize("count", [40, slow(2000)])
def test_no_placement_of_a_star_is_below_it(count: int) -> None:
    """Around a centre that reads or is read, with edges between the others, on several kinds of devices."""
    rng = np.random.default_rng(count)
    raised = 0
    for _ in range(count):
        n, centre = int(rng.integers(3, 8)), int(rng.integers(0, 3)) % 3
        edges = sorted({(min(v, centre), max(v, centre)) for v in range(n) if v != centre})
        edges += [
            e for e in zip(range(n - 1), range(1, n), strict=True) if rng.random() < 0.2 and e not in edges
        ]
        time, cost = rng.integers(1, 9, (2, n)).astype(float), rng.integers(0, 9, len(edges)).astype(float)
        size, memory = rng.integers(0, 4, n).astype(float), float(rng.integers(4, 16))
        graph = Graph.from_arrays({"accelerator": time[0], "cpu": 3 * time[1]}, edges, cost, size=size)
        count_of = int(rng.integers(1, 4)), int(rng.integers(0, 2))
        devices = Devices.accelerated(count_of[0], cpus=count_of[1], memory=memory)
        problem = contract(graph, devices, Goal(split="free"))
        best, relaxation = best_values(graph, devices)["free"], relax(problem)
        bound = star_bound(problem, relaxation)
        assert best is None or bound <= best * (1 + 1e-9)
        raised += bound > relaxation.bound
    assert raised > count / 4


@pytest.mark.parametrize("read", [True, False])
def test_a_star_around_one_node(read: bool) -> None:
    """A node that exchanges four tensors of 3 with nodes of 2 and 9 holds the short ones."""
    edges = [(v, 4) for v in range(4)] if read else [(4, v) for v in range(4)]
    times = [2.0, 2.0, 9.0, 9.0, 1.0]
    cost = [3.0, 3.0, 3.0, 3.0] if read else [3.0, 3.0, 3.0, 3.01]
    star = Graph.from_arrays({"accelerator": times}, edges, cost)
    problem = contract(star, Devices.accelerated(5))
    assert star_bound(problem, relax(problem)) == pytest.approx(1 + 2 + 2 + 3 + 3, rel=2e-3)


def test_a_star_with_one_device_for_all() -> None:
    """No transfer is paid for, so that the bound is the work."""
    star = Graph.from_arrays({"accelerator": [2.0, 2.0, 1.0]}, [(0, 2), (1, 2)], [3.0, 3.0])
    problem = contract(star, Devices.accelerated(1))
    assert star_bound(problem, relax(problem)) == pytest.approx(5.0)


def test_a_star_that_fits_nowhere_keeps_the_known_bound() -> None:
    """Where no threshold suffices for one kind of device the other ones count."""
    allowed = {"accelerator": [True, True, True], "cpu": [False, True, True]}
    star = Graph.from_arrays(
        {"accelerator": [2.0, 2.0, 1.0], "cpu": [2.0, 2.0, 1.0]},
        [(0, 2), (1, 2)],
        [3.0, 3.0],
        allowed=allowed,
    )
    problem = contract(star, Devices.accelerated(1, cpus=1))
    best = best_values(star, Devices.accelerated(1, cpus=1))["free"]
    assert best is not None
    assert star_bound(problem, relax(problem)) <= best * (1 + 1e-9)
