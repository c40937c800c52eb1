"""Over explicit groups the pipeline method finds the optimum, or a bound below it and a plan above it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import WorkloadError
from partitioner.methods.method import ANY_DEVICES, Settings
from tests.methods.dp.pipeline_cases import best_value, solved
from tests.methods.slow_parameters import slow
from tests.random_pipelines import Case, random_case

ALL = "groups kinds replicas memory constraints"
COMBINATIONS = [
    "groups",
    "groups kinds",
    "groups replicas",
    "groups memory",
    "groups constraints",
    "groups batch",
    "groups replicas memory",
    "groups replicas latency",
    ALL,
    f"{ALL} batch",
]


def some_case(seed: int, features: str, path: bool, nodes: int = 7, devices: int = 4) -> Case:
    """A random case; with `path` every tensor passes between a node and the next one."""
    rng = np.random.default_rng([seed, 77])
    case = random_case(rng, features.split(), nodes, devices)
    if not path:
        return case
    count = len(case.graph)
    edges = np.array([(v, v + 1) for v in range(count - 1)], dtype=np.int64).reshape(-1, 2)
    forward = replace(
        case.graph,
        edges=edges,
        cost=rng.choice([0.25, 0.5, 1.0, 2.0], len(edges)),
        backward=np.zeros(count, dtype=bool),
        color=np.full(count, -1),
        color_labels=(),
    )
    return replace(case, graph=forward)


def agree(seeds: range, features: str, path: bool) -> tuple[int, int]:
    """Hold the method against the oracle; return how many cases are feasible, and proven."""
    feasible = proven = 0
    for seed in seeds:
        case = some_case(seed, features, path)
        try:
            outcome, best = solved(case, Settings(orders=1 + seed % 3)), best_value(case)
        except WorkloadError:
            continue
        assert (outcome.parts is None) == (best is None), seed
        if best is None:
            assert outcome.infeasible, seed
            continue
        feasible += 1
        assert outcome.value >= best * (1 - 1e-9) - 1e-12, seed
        assert outcome.bound <= best * (1 + 1e-9) + 1e-12, seed
        assert outcome.statistics.get(ANY_DEVICES, 0.0) <= best * (1 + 1e-9) + 1e-12, seed
        if outcome.stop_reason == "optimal":
            proven += 1
            assert outcome.value == pytest.approx(best, rel=1e-9, abs=1e-12), seed
    return feasible, proven


@pytest.mark.parametrize(
    ("features", "count"),
    [("groups", 25), (ALL, 25), *(slow(features, 80) for features in COMBINATIONS)],
)
def test_equals_exhaustive_search_on_paths(features: str, count: int) -> None:
    """Where tensors pass between neighbours, every value is the oracle's and proven.

    Constraints may join nodes of a path that are no neighbours; then a few plans are not proven.
    """
    feasible, proven = agree(range(count), features, path=True)
    assert feasible > count // 4
    assert proven == feasible or ("constraints" in features and proven > 0.9 * feasible)


@pytest.mark.parametrize(
    ("features", "count"),
    [("groups", 25), (f"{ALL} batch", 25), *(slow(features, 80) for features in COMBINATIONS)],
)
def test_bounds_are_true_on_any_graph(features: str, count: int) -> None:
    """Where tensors skip stages, most plans are proven, and no bound or proof is false."""
    feasible, proven = agree(range(1000, 1000 + count), features, path=False)
    assert feasible > count // 4
    assert proven > feasible // 2
