"""A random split obeys the rules, is that of its seed, and no better than the best one."""

from __future__ import annotations

import pytest

from partitioner import DeviceKind, Devices, Graph, NoPlanFound, compare_methods, solve

GRAPH = Graph.from_arrays(
    {"gpu": [1.0, 2.0, 3.0, 1.0, 2.0]}, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], 0.5, size=1.0
)
GPUS = Devices((DeviceKind("gpu", 3, memory=3.0),))


@pytest.mark.parametrize("split", ["chain", "convex", "free"])
def test_random_splits_are_no_better_than_the_best(split: str) -> None:
    best = solve(GRAPH, GPUS, split=split)
    values = set()
    for seed in range(20):
        plan = solve(GRAPH, GPUS, split=split, method="random", seed=seed)
        again = solve(GRAPH, GPUS, split=split, method="random", seed=seed)
        assert plan.placement == again.placement and plan.value >= best.value >= plan.bound - 1e-9
        values.add(plan.value)
    assert len(values) > 1


def test_a_comparison_has_it_as_its_baseline() -> None:
    found = compare_methods(GRAPH, GPUS, split="chain", time_limit=5.0)
    assert "random" in [one.method for one in found.compared]


def test_where_hardly_any_split_fits_nothing_is_claimed() -> None:
    path = Graph.from_arrays({"gpu": [1.0] * 40}, [(i, i + 1) for i in range(39)], size=1.0)
    with pytest.raises(NoPlanFound):
        solve(path, Devices((DeviceKind("gpu", 8, memory=5.0),)), method="random")
