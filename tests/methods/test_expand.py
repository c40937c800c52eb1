"""Parts become a placement and a placement becomes parts, without change where nothing was merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner import Devices, Graph, evaluate, solve
from partitioner.methods.expand import expand, parts_of
from partitioner.methods.loads import value_of
from partitioner.methods.method import Outcome, Part
from partitioner.methods.rules import obeys
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from tests.random_problems import cases, has_shape, placement_of, random_parts


def outcome_of(problem: object, parts: list[Part] | None) -> Outcome:
    return Outcome(problem, parts, 0.0, 0.0, "heuristic")  # type: ignore[arg-type]


def expanded(graph: Graph, devices: Devices, outcome: Outcome) -> dict[int | str, str]:
    """The device of every node."""
    placement = expand(graph, devices, outcome)
    assert placement is not None and not placement.replicas
    return dict(placement.device)


def used(graph: Graph, devices: Devices, placement: dict[int | str, str]) -> list[str]:
    """The devices in use, in the order of the chain if it is one."""
    evaluation = evaluate(graph, devices, placement)
    return list(evaluation.shape.order) or [load.name for load in evaluation.loads if load.nodes]


@pytest.mark.parametrize(("first", "count"), [(0, 100), pytest.param(100, 400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("split", ["chain", "convex", "free"])
def test_there_and_back(split: str, first: int, count: int) -> None:
    """Parts that obey come back as they were but for their order; the placement has every node."""
    returned = 0
    for case in cases(first, count):
        problem = case.problem(split)
        parts = random_parts(problem, case.rng)
        placement = expanded(case.graph, case.devices, outcome_of(problem, parts))
        assert placement == placement_of(case, problem, parts)
        if not obeys(problem, parts):
            continue
        back = parts_of(
            problem, case.graph, case.devices, placement, used(case.graph, case.devices, placement)
        )
        assert back is not None, case.seed
        assert {(p.kind, *p.nodes.tolist()) for p in back} == {(p.kind, *p.nodes.tolist()) for p in parts}
        returned += 1
    assert returned > count // 10


@pytest.mark.parametrize(("first", "count"), [(0, 120), pytest.param(120, 880, marks=pytest.mark.slow)])
@pytest.mark.parametrize("split", ["convex", "free"])
def test_a_placement_that_tears_merged_nodes_can_be_a_start(split: str, first: int, count: int) -> None:
    """Nodes without time go where their supernode's work is; that obeys the rules and costs no more."""
    moved = 0
    for case in cases(first, count):
        case = replace(case, objective="throughput")
        problem, unmerged = case.problem(split), replace(case, graph=_busy(case.graph)).problem("free")
        if not problem.time.any(axis=(0, 1)).all():
            continue  # a supernode without work, which goes with any of its nodes
        placement = placement_of(case, unmerged, random_parts(unmerged, case.rng))
        evaluation = evaluate(case.graph, case.devices, placement)
        if evaluation.feasible and has_shape(case, evaluation, split):
            names = used(case.graph, case.devices, placement)
            start = parts_of(problem, case.graph, case.devices, placement, names)
            assert start is not None and obeys(problem, start), case.seed
            assert value_of(problem, start) <= evaluation.value * (1 + 1e-9), case.seed
            moved += placement_of(case, problem, start) != placement
    assert moved >= count // 40


def _busy(graph: Graph) -> Graph:
    """The graph with time on every node, so that none is merged."""
    return replace(graph, time=graph.time + 1.0)


def test_what_breaks_a_rule_is_no_start() -> None:
    """0 2 | 1 along a path is a start for a free split, not for a convex one or a chain."""
    path = Graph.from_arrays({"accelerator": np.ones(3)}, [(0, 1), (1, 2)])
    two = Devices.accelerated(2)
    placement = {0: "accelerator1", 1: "accelerator0", 2: "accelerator1"}
    found = {
        split: parts_of(contract(path, two, Goal(split=split)), path, two, placement, two.names)
        for split in ("chain", "convex", "free")
    }
    assert found["chain"] is None and found["convex"] is None
    assert found["free"] is not None
    assert [part.nodes.tolist() for part in found["free"]] == [[1], [0, 2]]


def test_without_parts_there_is_no_placement() -> None:
    path = Graph.from_arrays({"accelerator": np.ones(3)}, [(0, 1), (1, 2)])
    problem = contract(path, Devices.accelerated(2))
    assert expand(path, Devices.accelerated(2), outcome_of(problem, None)) is None


def test_devices_of_a_kind_are_used_in_order() -> None:
    """Parts on accelerator, CPU, accelerator: accelerator0, cpu0, accelerator1."""
    path = Graph.from_arrays({"accelerator": np.ones(3), "cpu": np.ones(3)}, [(0, 1), (1, 2)])
    devices = Devices.accelerated(2, cpus=1)
    problem = contract(path, devices, Goal(split="free"))
    parts = [Part(kind, problem.member[[node]]) for node, kind in enumerate((0, 1, 0))]
    placement = expanded(path, devices, outcome_of(problem, parts))
    assert placement == {0: "accelerator0", 1: "cpu0", 2: "accelerator1"}


@pytest.mark.parametrize("split", ["convex", "free"])
def test_solve_takes_a_warm_start_of_the_shape_asked_for(split: str) -> None:
    """A start of another shape, or none that is feasible, does no harm either."""
    path = Graph.from_arrays({"accelerator": np.ones(3)}, [(0, 1), (1, 2)], size=1.0)
    devices = Devices.accelerated(2, memory=3.0)
    for where in ((0, 0, 1), (0, 1, 0), (2, 2, 2)):
        start = {node: f"accelerator{device}" for node, device in enumerate(where)}
        plan = solve(path, devices, split=split, method="single_device", warm_start=start)
        assert plan.value == 3.0
