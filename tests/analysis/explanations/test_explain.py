"""Every number in every sentence of an explanation is that of a recomputation, and of a separate solve."""

from __future__ import annotations

from pathlib import Path

import pytest

import partitioner as pt
from partitioner.analysis.explanations.what_ifs.changes import CHANGES
from tests.analysis.explanations.checked import check_explanation

INSTANCES = Path(__file__).parents[3] / "instances"
LONG = {  # changes whose optimum takes more than two seconds
    "gnmt_operator_inference": ("one_more_replica",),
    "inceptionv3_operator_inference": ("one_more_replica",),
    "moe_small_operator_inference": ("one_more_replica", "faster_links"),
}
NAMES = sorted(path.stem for path in INSTANCES.glob("*.json") if path.stem != "index")


def checked(name: str) -> pt.Explanation:
    """The explanation of an instance's best plan, after a comparison of all its numbers."""
    workload = pt.load(INSTANCES / f"{name}.json")
    graph, devices = workload.graph, workload.devices
    plan = pt.solve(graph, devices)
    changes = [change for change in CHANGES if change not in LONG.get(name, ())]
    found = pt.explain(graph, devices, plan, what_if=changes, time_limit=None)
    assert check_explanation(graph, devices, plan, found) > 20
    return found


@pytest.mark.parametrize("name", ["gnmt_training", "gpt3_6b7_training"])
def test_sentences_of_two_instances(name: str) -> None:
    found = checked(name)
    assert (found.excess is not None) == (name == "gpt3_6b7_training")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_sentences_of_every_instance(name: str) -> None:
    checked(name)


def test_a_stage_whose_first_device_has_a_higher_number_than_its_replica() -> None:
    graph = pt.Graph.from_arrays({"gpu": [1.0, 3.0]}, [(0, 1)], cost=0.1)
    devices = pt.Devices((pt.DeviceKind("gpu", 3),))
    constraints = pt.Constraints(pin={1: "gpu2"}, use_all_devices=True)
    plan = pt.solve(graph, devices, replicas=2, constraints=constraints)
    assert plan.replicas == {"gpu2": ("gpu1",)}
    (found,) = pt.explain(graph, devices, plan).bottlenecks
    assert (found.device, found.stages, found.devices) == ("gpu2", (2,), 2)


def test_other_schedules_of_a_plan_with_several_stages_on_a_device_are_solved() -> None:
    edges, color = [(i, i + 1) for i in range(7)], [0, 1, 2, 3, 3, 2, 1, 0]
    backward = [False] * 4 + [True] * 4
    graph = pt.Graph.from_arrays({"gpu": [1.0] * 8}, edges, 0.1, backward=backward, color=color)
    devices = pt.Devices((pt.DeviceKind("gpu", 2),))
    plan = pt.solve(graph, devices, schedule="interleaved_1f1b", microbatches=4)
    found = pt.explain(graph, devices, plan, what_if=["other_schedule"]).what_ifs
    assert [one.words.split()[1] for one in found] == ["gpipe", "1f1b", "1f1b_async"]
    for one in found:
        alone = pt.solve(graph, devices, schedule=one.words.split()[1], microbatches=4)
        assert one.value == pytest.approx(alone.value)
