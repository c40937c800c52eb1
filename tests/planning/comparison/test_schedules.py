"""A comparison ranks schedules by what the simulation says of each, and tells why some cannot be used."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from partitioner import Comparison, DeviceKind, Devices, Graph, OptionError, WorkloadError, compare_schedules
from partitioner.planning.comparison.ranked import bubble_share, fullest_device
from partitioner.schedule import simulate
from partitioner.schedule.kinds.registry import KINDS
from tests.schedule.runs import TRAINING, line, pipeline, placement

VEES = {"zbv", "dualpipev"}  # with two stages on each device


def gpus(memory: float | None = None) -> Devices:
    return Devices((DeviceKind("gpu", 3, memory),), "overlapped")


def compared(memory: float | None = None, microbatches: int = 6, **options: Any) -> Comparison:
    return compare_schedules(line(6), gpus(memory), placement("1f1b", 3), microbatches, **options)


def test_every_schedule_for_training_is_there() -> None:
    found = compared()
    assert {one.schedule for one in found.ranked} == {n for n, k in KINDS.items() if k.trains is not False}
    assert {one.schedule for one in found.ranked if not one.feasible} == VEES


def test_inference_is_compared_by_itself() -> None:
    found = compare_schedules(line(6, backward=False), gpus(), placement("inference", 3, False), 6)
    assert [one.schedule for one in found.ranked] == ["inference", "single_stream"]


def test_the_figures_are_those_of_the_simulation() -> None:
    found = compared()
    spans = [one.makespan for one in found.ranked]
    assert spans == sorted(spans) and found.best is found.ranked[0]
    for one in (one for one in found.ranked if one.schedule not in VEES):
        expected = simulate(line(6), gpus(), placement("1f1b", 3), one.schedule, 6)
        assert one.timeline is not None and one.makespan == expected.makespan
        assert one.timeline.peak_memory.tolist() == expected.peak_memory.tolist()
    assert found.bound == expected.bound


def test_what_does_not_fit_comes_last_with_the_reason() -> None:
    found = compared(memory=30.0)
    split = [one.feasible for one in found.ranked]
    assert split == sorted(split, reverse=True) and not all(split)
    refused = {one.schedule: one.against for one in found.ranked if not one.feasible}
    assert refused["gpipe"] == "gpu0 needs 52 of memory and has 30"
    assert found.best is not None and found.best.timeline is not None and found.best.timeline.fits.all()


def test_a_limit_of_its_own_replaces_that_of_the_devices() -> None:
    assert not any(one.feasible for one in compared(memory=1.0).ranked)
    one_limit = compare_schedules(line(6), gpus(1.0), placement("1f1b", 3), 6, memory=52.0)
    assert {one.schedule for one in one_limit.ranked if not one.feasible} == VEES
    none_fits = compare_schedules(line(6), gpus(), placement("1f1b", 3), 6, memory=1.0)
    assert none_fits.best is None and "no schedule can be used" in none_fits.summary(80)


def test_what_does_not_suit_comes_last_with_the_reason() -> None:
    """Stages that go round the devices are no line and no V."""
    found = {one.schedule: one for one in compared(microbatches=5).ranked}
    assert found["zbv"].timeline is None and math.isinf(found["zbv"].makespan)
    assert "stages k and 2 p - 1 - k must be on device k" in found["zbv"].against
    dealt = compare_schedules(line(6), gpus(), placement("interleaved", 3), 6)
    assert {one.schedule for one in dealt.ranked if one.timeline is None} == {"zbv", "dualpipev"}


@pytest.mark.parametrize(
    ("microbatches", "options", "message"),
    [
        (0, {}, "microbatches = 0"),
        (6, {"links": "radio"}, "links = 'radio'"),
        (6, {"memory": 0}, "memory = 0: must be None or a positive number"),
        (6, {"memory": math.nan}, "memory = nan"),
    ],
)
def test_what_no_schedule_can_run_is_an_error(
    microbatches: int, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        compare_schedules(line(6), gpus(), placement("1f1b", 3), microbatches, **options)


def test_a_broken_placement_is_an_error() -> None:
    with pytest.raises(WorkloadError, match="tpu0"):
        compare_schedules(line(6), gpus(), dict.fromkeys(range(12), "tpu0"), 6)


def test_the_bubble_share_of_equal_stages_is_the_classic_one() -> None:
    """(p - 1) / (m + p - 1) for p stages and m microbatches."""
    backward = [False] * 3 + [True] * 3
    graph = Graph.from_arrays({"gpu": [1.0] * 6}, [(i, i + 1) for i in range(5)], backward=backward)
    nodes = {i: f"gpu{min(i, 5 - i)}" for i in range(6)}
    assert bubble_share(simulate(graph, gpus(), nodes, "gpipe", 4)) == pytest.approx(2 / 6)


@pytest.mark.parametrize("name", TRAINING)
def test_the_fullest_device_is_nearest_to_its_limit(name: str) -> None:
    timeline = pipeline(name)
    share = timeline.peak_memory / timeline.memory_limit
    assert share[fullest_device(timeline)] == share.max()


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_keeps_its_width(width: int) -> None:
    found = compared(memory=30.0, microbatches=5)
    text = found.summary(width)
    assert max(map(len, text.splitlines())) <= width
    assert all(one.schedule in text for one in found.ranked)
    assert "gpipe cannot be used: gpu" in text and "(gpipe)" in text
    assert ("█" in text) == (width > 128)


def test_json_is_strict_and_says_the_same() -> None:
    found = compared(memory=30.0, microbatches=5)
    record = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert [one["schedule"] for one in record["schedules"]] == [one.schedule for one in found.ranked]
    assert record["schedules"][0]["makespan"] == found.ranked[0].makespan
    unsuited = next(one for one in record["schedules"] if one["schedule"] == "zbv")
    assert "makespan" not in unsuited and not unsuited["feasible"] and unsuited["against"]
