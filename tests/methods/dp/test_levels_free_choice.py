"""Optima over levels are among stated pipelines: a note says so where a free choice is better."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, Level, Plan, certify, solve
from partitioner.methods.method import ANY_DEVICES
from tests.methods.dp.levels_free_choice import best_free_choice
from tests.methods.slow_parameters import slow

AMONG = "optimal among pipelines that visit the groups of devices one after the other"


def two_servers(slowdown: float = 2.0, kinds: tuple[str, ...] = ("gpu", "npu"), each: int = 1) -> Devices:
    level = Level("server", dict.fromkeys(kinds, each), slowdown)
    return Devices(tuple(DeviceKind(kind, 2 * each, bandwidth=8.0) for kind in kinds), levels=(level,))


def spans_servers(plan: Plan, each: int) -> bool:
    """Whether the devices of a stage are in both servers, which have `each` devices of a kind."""
    stages = [(first, *more) for first, more in plan.replicas.items()]
    return any(len({int(name[3:]) // each for name in stage}) > 1 for stage in stages)


def noted(plan: Plan) -> bool:
    return any(note.startswith(AMONG) for note in plan.notes)


def test_stages_on_parts_of_several_groups_are_found() -> None:
    """Each kind suits one of two nodes: on both devices of its kind each takes half its time."""
    graph = Graph.from_arrays({"gpu": [2.5, 1.0], "npu": [0.5, 2.5]}, [(0, 1)], 0.5)
    plan = solve(graph, two_servers(), replicas=2)
    best = best_free_choice(graph, two_servers(), 2)
    assert plan.value == best == 1.0
    assert plan.replicas == {"npu0": ("npu1",), "gpu0": ("gpu1",)}
    assert plan.bound == plan.statistics[ANY_DEVICES] <= best


def test_certificates_hold_for_any_choice_of_devices() -> None:
    graph = Graph.from_arrays({"gpu": [2.5, 1.0], "npu": [0.5, 2.5]}, [(0, 1)], 0.5)
    found = certify(graph, two_servers(), {0: "gpu0", 1: "npu0"}, replicas={"gpu0": ["gpu1"]})
    assert found.bound <= best_free_choice(graph, two_servers(), 2)


@pytest.mark.parametrize(("seed", "count"), [(0, 8), slow(0, 12), slow(1, 150)])
def test_random_levels(seed: int, count: int) -> None:
    """What is below a value that is called optimal has a note; nothing is below the bound for any devices."""
    rng = np.random.default_rng(seed)
    wider = 0
    for _ in range(count):
        n, kinds = int(rng.integers(2, 4)), ("gpu", "npu")[: int(rng.integers(1, 3))]
        graph = Graph.from_arrays(
            {kind: rng.integers(1, 8, n) / 2 for kind in kinds},
            [(i, i + 1) for i in range(n - 1)],
            rng.integers(0, 4, n - 1) / 4,
            size=rng.integers(0, 3, n).astype(float),
        )
        devices = two_servers(float(rng.choice([1, 2, 4])), kinds, 3 - len(kinds))
        replicas = int(rng.integers(1, 3))
        plan = solve(graph, devices, replicas=replicas)
        best = best_free_choice(graph, devices, replicas)
        assert best <= plan.value * (1 + 1e-9)
        assert plan.statistics.get(ANY_DEVICES, plan.bound) <= best * (1 + 1e-9)
        assert plan.status != "optimal" or noted(plan) or best >= plan.value * (1 - 1e-9)
        wider += spans_servers(plan, 3 - len(kinds))
    assert wider


def test_no_note_where_the_plan_is_optimal_on_equal_links_too() -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], 0.0)
    plan = solve(graph, two_servers(kinds=("gpu",)))
    assert plan.status == "optimal" and not noted(plan)
