"""Pipelines over levels and groups: what is claimed holds over all plans that the evaluator accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trials.accepted import capacities, sizes, stages

from partitioner import (
    DeviceGroup,
    DeviceKind,
    Devices,
    Graph,
    GroupLink,
    Level,
    conflicting_demands,
    evaluate,
    least_memory,
    solve,
)

GPIPE: dict[str, Any] = {"schedule": "gpipe", "microbatches": 6, "replicas": 4}
SERVERS = (Level("server", {"gpu": 2}, 2.0),)
RACKS = (Level("server", {"gpu": 1}, 2.0), Level("rack", {"gpu": 2}, 2.0))


def scarce(levels: tuple[Level, ...], memory: float = 12.0) -> tuple[Graph, Devices]:
    """Two nodes, of which the second fits only if three devices share it."""
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cost=0.1, size=4.0, activations=[1.0, 3.0])
    return graph, Devices((DeviceKind("gpu", 4, memory=memory),), levels=levels)


@pytest.mark.parametrize("levels", [SERVERS, RACKS])
def test_a_stage_in_two_servers_fits_where_none_in_whole_servers_does(levels: tuple[Level, ...]) -> None:
    graph, devices = scarce(levels)
    plan = solve(graph, devices, **GPIPE)
    assert plan.value == pytest.approx(1.2)
    assert plan.bound <= 1.2
    again = evaluate(graph, devices, plan)
    assert again.feasible
    assert again.value == plan.value


@pytest.mark.parametrize("levels", [SERVERS, RACKS])
def test_the_least_memory_is_that_of_stages_on_any_devices(levels: tuple[Level, ...]) -> None:
    found = least_memory(*scarce(levels), **GPIPE)
    assert found.memory == 10.0
    assert found.proven


def test_demands_that_a_plan_obeys_are_in_no_conflict() -> None:
    assert not conflicting_demands(*scarce(SERVERS), **GPIPE).demands


@pytest.mark.parametrize("limits", [{}, {"max_time_per_sample": 5.0}])
def test_the_capacity_is_that_of_stages_on_any_devices(limits: dict[str, Any]) -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], cost=0.1, size=4.0, cache=[1.0, 3.0])
    plan = solve(graph, scarce(RACKS)[1], "capacity", replicas=4, **limits)
    assert (plan.value, plan.status) == (6.0, "optimal")


def test_a_stage_in_two_explicit_groups_is_found() -> None:
    """Three devices share the second node: two of one group and one of the other."""
    graph, devices = scarce(())
    groups = DeviceGroup("a", {"gpu": 2}), DeviceGroup("b", {"gpu": 2})
    apart = Devices(devices.kinds, groups=groups, links=(GroupLink(2.0),))
    plan = solve(graph, apart, **GPIPE)
    assert plan.value == pytest.approx(1.2)


@pytest.mark.parametrize(("family", "count"), [(stages, 30), (capacities, 12), (sizes, 12)])
def test_random_cases_against_every_accepted_plan(family: object, count: int) -> None:
    assert callable(family)
    for seed in range(count):
        row, outcome, wrong, again = family(np.random.default_rng([seed, 9]))
        assert not wrong, f"{row}, {outcome}: {wrong}\n{again}"
