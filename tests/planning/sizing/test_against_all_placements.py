"""The fewest devices and the least memory are those of an exhaustive search, and both are proven."""

from __future__ import annotations

import numpy as np
import pytest

import partitioner as pt
from tests.oracle_sizing import fewest, least_held
from tests.random_workloads import random_workload

LIMITS = (None, 1.0, 2.0, 4.0, 8.0)


def case(seed: int, most_nodes: int) -> tuple[pt.Graph, pt.Devices, str, float | None]:
    """A random workload, a kind of which it has devices, and a limit of the time."""
    rng = np.random.default_rng(seed)
    graph, devices = random_workload(rng, most_nodes)
    kind = str(rng.choice([each.name for each in devices.kinds if each.count]))
    limit = LIMITS[int(rng.integers(len(LIMITS)))]
    return graph, devices, kind, limit


def compare_fewest(seed: int, split: str, most_nodes: int = 6) -> str:
    """Compare the fewest devices with those of all placements; return what the case was about."""
    graph, devices, kind, limit = case(seed, most_nodes)
    best = fewest(graph, devices, kind, np.inf if limit is None else limit, split)
    try:
        found = pt.fewest_devices(graph, devices, limit, kind=kind, split=split)
    except (pt.InfeasibleError, pt.WorkloadError):
        assert best is None, (seed, split, best)
        return "infeasible"
    assert (found.count, found.bound, found.proven) == (best, best, True), (seed, split)
    evaluation = pt.evaluate(graph, None, found.plan)
    assert evaluation.feasible and (limit is None or evaluation.value <= limit * (1 + 1e-9))
    named = next(each for each in found.plan.hardware.kinds if each.name == kind)  # type: ignore[union-attr]
    assert named.count == found.count
    return "limited" if limit else "any time"


def compare_memory(seed: int, split: str, most_nodes: int = 6) -> str:
    """Compare the least memory with that of all placements; return what the case was about."""
    graph, devices, kind, limit = case(seed, most_nodes)
    best = least_held(graph, devices, kind, np.inf if limit is None else limit, split)
    try:
        found = pt.least_memory(graph, devices, limit, kind=kind, split=split)
    except (pt.InfeasibleError, pt.WorkloadError):
        assert best is None, (seed, split, best)
        return "infeasible"
    assert found.memory == pytest.approx(best, rel=1e-8) and found.bound == found.memory, (seed, split)
    evaluation = pt.evaluate(graph, None, found.plan)
    assert evaluation.feasible and (limit is None or evaluation.value <= limit * (1 + 1e-9))
    return "limited" if limit else "any time"


@pytest.mark.parametrize("seed", range(20))
def test_chains_are_those_of_all_placements(seed: int) -> None:
    compare_fewest(seed, "chain")
    compare_memory(seed, "chain")


@pytest.mark.slow
@pytest.mark.parametrize("split", ["convex", "free"])
@pytest.mark.parametrize("seed", range(4))
def test_other_splits_are_those_of_all_placements(seed: int, split: str) -> None:
    compare_fewest(seed, split, most_nodes=5)
    compare_memory(seed, split, most_nodes=5)
