"""The devices of a stage take samples in turn: plans are those of an exhaustive search over all chains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import Devices, Graph, InfeasibleError, OptionError, WorkloadError
from tests.oracle_capacity import best_shared_capacity
from tests.random_pipelines import random_case

FEATURES = ("replicas", "replicas memory", "replicas kinds memory", "replicas kinds groups memory")


def compare_with_all_chains(seed: int, most_nodes: int = 5) -> str:
    """Compare a plan with the best chain of stages; return what the case was about."""
    rng = np.random.default_rng([seed, 5])
    features = FEATURES[seed % len(FEATURES)]
    case = random_case(rng, features.split(), most_nodes, 4)
    graph = replace(case.graph, cache=rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], len(case.graph)))
    if not graph.cache.any():
        return "no cache"
    total = float(graph.size.sum() + graph.parts.sum() + 3 * graph.cache.sum())
    kinds = [
        replace(kind, memory=float(np.ceil(total * rng.uniform(0.2, 1.0)))) for kind in case.devices.kinds
    ]
    try:
        devices = replace(case.devices, kinds=tuple(kinds))
        schedule = [None, "inference"][int(rng.integers(2))]
        limit: dict[str, Any] = (
            {"max_time_per_sample": float(rng.choice([1.0, 3.0, 8.0]))} if seed % 3 == 0 else {}
        )
        plan = pt.solve(graph, devices, "capacity", replicas=case.replicas, schedule=schedule, **limit)
    except (InfeasibleError, WorkloadError):
        plan = None
    longest = limit.get("max_time_per_sample", np.inf)
    best = best_shared_capacity(graph, devices, case.replicas, schedule, longest)
    if plan is None or best is None:
        assert plan is None and best is None, (seed, plan, best)
        return "infeasible"
    assert plan.value <= best.samples <= plan.bound, (seed, plan.value, best)
    found = pt.evaluate(graph, None, plan)
    assert found.feasible and found.value == plan.value, seed
    load, bound = plan.bottleneck.load, plan.statistics["time_bound"]
    proven = plan.status == "optimal" and bound >= load * (1 - 1e-9)
    assert proven or "groups" in features, seed  # where tensors between groups pass over a stage
    if not proven:
        return "open"
    assert load == pytest.approx(best.time, rel=1e-9, abs=1e-12), (seed, best)
    return "shared" if plan.replicas else "alone"


@pytest.mark.parametrize("seed", range(12))
def test_plans_hold_what_the_best_chain_holds(seed: int) -> None:
    compare_with_all_chains(seed)


def shared() -> tuple[Graph, Devices]:
    """A node of size 2 that keeps 3 of every sample, and three devices of 12."""
    graph = Graph.from_arrays({"gpu": [6.0]}, size=2.0, cache=3.0)
    return graph, Devices((pt.DeviceKind("gpu", 3, memory=12.0),))


def test_a_plan_by_hand() -> None:
    """Each device has room for 3 samples of its own, three of them for 9, and each takes a third of them."""
    plan = pt.solve(*shared(), "capacity", replicas=3)
    assert (plan.value, plan.bound, plan.status, plan.bottleneck.load) == (9.0, 9.0, "optimal", 2.0)
    assert [(one.cache, one.capacity, one.memory) for one in plan.devices] == [(3.0, 9, 11.0)] * 3
    eight = pt.evaluate(*shared(), {0: "gpu0"}, "capacity", replicas={"gpu0": ["gpu1"]})
    assert (eight.value, eight.loads[1].memory, eight.loads[2].memory) == (6.0, 11.0, 0.0)


def test_replicas_and_layers_are_weighed_against_each_other() -> None:
    """Where layers are alike, cutting them holds as much as sharing them, and needs no second copy."""
    graph = Graph.from_arrays({"gpu": [3.0, 3.0]}, [(0, 1)], size=4.0, cache=1.0)
    devices = Devices((pt.DeviceKind("gpu", 2, memory=10.0),))
    alone, together = (pt.solve(graph, devices, "capacity", replicas=r) for r in (1, 2))
    assert alone.value == together.value == 6.0 and not together.replicas
    assert (
        pt.evaluate(graph, devices, {0: "gpu0", 1: "gpu0"}, "capacity", replicas={"gpu0": ["gpu1"]}).value
        == 2
    )


@pytest.mark.parametrize("schedule", ["1f1b", "1f1b_async"])
def test_schedules_for_training_are_refused(schedule: str) -> None:
    words = f"replicas = 2: must be 1 for objective 'capacity' under schedule '{schedule}'"
    with pytest.raises(OptionError, match=words):
        pt.solve(*shared(), "capacity", replicas=2, schedule=schedule)


def test_notes_on_bounds_say_that_they_are_times() -> None:
    graph = pt.Graph.from_arrays(
        {"gpu": [1.0, 1.0]}, [(0, 1)], cost=0.1, size=4.0, activations=[1.0, 3.0], cache=[1.0, 3.0]
    )
    servers = (pt.Level("server", {"gpu": 1}, 2.0), pt.Level("rack", {"gpu": 2}, 2.0))
    devices = pt.Devices((pt.DeviceKind("gpu", 6, memory=12.0),), levels=servers)
    plan = pt.solve(graph, devices, "capacity", replicas=6)
    noted = [note for note in plan.notes if "lower bound" in note]
    assert noted and all(note.startswith("of the time per sample: ") for note in noted)
