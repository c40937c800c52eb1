"""Explanations of pipelines with replicas and links, of schedules, and of placements that break a rule."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.analysis.explanations.bottleneck import MOST
from partitioner.evaluation.solution import PlanRecord
from tests.random_pipelines import random_case

ALL = ("kinds", "replicas", "levels", "memory", "batch")


def compare_sums(seed: int) -> str:
    """Compare the nodes and tensors of a random pipeline with the load that the evaluator finds."""
    rng = np.random.default_rng(seed)
    features = [name for name in ALL if rng.random() < 0.6]
    case = random_case(rng, ["groups" if name == "levels" and seed % 2 else name for name in features])
    given: dict[str, Any] = {"schedule": case.schedule, "microbatches": case.microbatches}
    try:
        plan = pt.solve(case.graph, case.devices, case.objective, replicas=case.replicas, **given)
    except (pt.InfeasibleError, pt.WorkloadError):
        return "no plan"
    found = pt.explain(case.graph, case.devices, plan, what_if=())
    one = found.bottlenecks[0]
    load = max((each for each in plan.devices if each.nodes), key=lambda each: each.load)
    assert found.value == plan.value and one.load == load.load and not found.violations
    assert all(move.verdict != "better" for move in found.moves) or plan.bound < plan.value
    if one.node_count <= MOST:
        assert sum(each.time for each in one.nodes) == pytest.approx(sum(load.compute))
    if one.tensor_count <= MOST:
        for way, pair in (("from", load.transfer_in), ("to", load.transfer_out)):
            times = [each.time for each in one.tensors if each.direction == way]
            assert sum(times) == pytest.approx(sum(pair))
    json.loads(found.to_json())
    return "shared" if one.devices > 1 else "links" if case.devices.levels or case.devices.groups else "plain"


@pytest.mark.parametrize("seed", range(25))
def test_nodes_and_tensors_add_up_to_the_load(seed: int) -> None:
    compare_sums(seed)


def training() -> pt.Graph:
    """Two forward and two backward nodes in a row."""
    return pt.Graph.from_arrays(
        {"accelerator": [1.0, 2.0, 5.0, 3.0]},
        [(0, 1), (1, 2), (2, 3)],
        0.5,
        size=1.0,
        backward=[False, False, True, True],
        color=["a", "b", "b", "a"],
    )


def placed(*devices: int) -> dict[int | str, str]:
    return {node: f"accelerator{number}" for node, number in enumerate(devices)}


def test_gpipe_has_a_bottleneck_for_each_pass() -> None:
    """Device 0 has 1 + 0.5 forward and 0.5 + 3 backward, device 1 has 0.5 + 2 and 5 + 0.5."""
    plan = PlanRecord(placed(0, 1, 1, 0), objective="gpipe", split="chain")
    found = pt.explain(training(), pt.Devices.accelerated(2), plan, what_if=())
    assert [(one.part, one.device, one.load) for one in found.bottlenecks] == [
        ("forward", "accelerator1", 2.5),
        ("backward", "accelerator1", 5.5),
    ]
    assert found.value == 8.0 and [one.node_count for one in found.bottlenecks] == [1, 1]
    assert "is the bottleneck of the backward pass" in found.summary(200)


@pytest.mark.parametrize("objective", ["latency", "makespan"])
def test_the_time_of_a_critical_path_is_all_accounted_for(objective: str) -> None:
    plan = PlanRecord(placed(0, 1, 1, 0), objective=objective)
    graph, devices = training(), pt.Devices.accelerated(2)
    path = pt.explain(graph, devices, plan, what_if=()).path
    assert path is not None
    assert path.end == pt.evaluate(graph, devices, placed(0, 1, 1, 0), objective).value
    assert sum(time for _, time in path.devices) + path.waiting == pytest.approx(path.end)
    assert [entry.time for entry in path.longest] == sorted((x.time for x in path.longest), reverse=True)


def test_a_placement_that_breaks_a_rule_is_explained_without_a_bound() -> None:
    devices = pt.Devices.accelerated(2, memory=3.0)
    found = pt.explain(training(), devices, placed(0, 0, 0, 0), what_if=["more_memory"])
    text = found.summary(200)
    assert found.bound is None and len(found.violations) == 1
    assert "The plan breaks 1 rule and cannot be used as it is." in text and "1B too much" in text
    assert "Broken rule: accelerator0 holds 4, its memory is 3." in text
    assert "If it is solved again as it is, the best plan found takes 8 per sample" in text


def test_memory_of_a_neighbour_refuses_a_better_border() -> None:
    """Node 1 would make the loads 3 and 4 instead of 5 and 2, but device 1 holds 2 of 2 already."""
    graph = pt.Graph.from_arrays({"accelerator": [3.0, 2.0, 2.0]}, [(0, 1), (1, 2)], size=[1.0, 1.0, 2.0])
    devices = pt.Devices.accelerated(2, memory=2.0)
    found = pt.explain(graph, devices, placed(0, 0, 1), what_if=["unlimited_memory"])
    (move,) = found.moves
    assert (move.verdict, move.nodes, move.value, move.excess) == ("memory", (1,), 4.0, 1.0)
    assert found.excess is not None and -found.excess.free == 1.0
    text = found.summary(200)
    assert "The memory of another device bounds the value: a better border is refused." in text
    assert "accelerator1 would then hold 3B, 1B more than its memory of 2B." in text
    assert "Memory is the limit: without it the best plan found takes 4 per sample, 20.0% less" in text


def test_samples_in_flight_without_and_with_a_limit() -> None:
    graph = pt.Graph.from_arrays({"accelerator": [2.0]}, cache=1.0)
    plan = PlanRecord({0: "accelerator0"}, objective="capacity")
    text = pt.explain(graph, pt.Devices.accelerated(1), plan, what_if=()).summary(200)
    assert "The plan has room for any number of samples in flight." in text
    text = pt.explain(graph, pt.Devices.accelerated(1, memory=4.0), plan).summary(200)
    assert "The plan has room for 4 samples in flight, and no chain split has room for more" in text
    assert "keeps 1B of every sample.\n  The only node with a cache is '0' (1B)." in text
    assert "If it is solved again as it is, the best plan found has room for 4 samples in flight" in text


def test_reprs_are_one_short_line() -> None:
    graph, devices = training(), pt.Devices.accelerated(2, memory=9.0)
    plan = pt.solve(graph, devices)
    found = [
        pt.explain(graph, devices, plan, what_if=()),
        pt.fewest_devices(graph, devices, None),
        pt.least_memory(graph, devices),
        pt.conflicting_demands(graph, devices),
    ]
    assert all(len(repr(each)) <= 400 and "\n" not in repr(each) for each in found)
