"""The table of a timeline has a line for each device, within the width, with the simulation's figures."""

from __future__ import annotations

import pytest

from partitioner import DeviceKind, Devices, Graph
from partitioner.results.timeline_table import timeline_table
from partitioner.schedule import simulate
from tests.schedule.runs import every_run, pipeline

RUNS = every_run()


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("name", RUNS)
def test_a_line_for_each_device(name: str, width: int) -> None:
    timeline = RUNS[name]
    lines = timeline_table(timeline, width).splitlines()
    assert max(map(len, lines)) <= width
    for i, device in enumerate(timeline.devices):
        (line,) = [line for line in lines if line.startswith(f"{device} ") and "needs" not in line]
        assert f"{timeline.bubble[i]:.1%}" in line and f" {timeline.in_flight[i]}" in line


def test_the_head_compares_with_the_largest_load() -> None:
    """69 for six samples are 11.5 each, where the fullest device is busy for 8."""
    head = timeline_table(pipeline("1f1b"), 80).splitlines()[:2]
    assert head == [
        "1f1b, 6 microbatches: 69, 11.5 per sample",
        "the largest load is 8 per sample: 69.6% of the possible throughput",
    ]


def test_stages_of_a_device_are_counted_from_1() -> None:
    lines = timeline_table(pipeline("interleaved"), 80).splitlines()
    assert [line.split()[:3] for line in lines[3:6]] == [
        [f"gpu{i}", f"{i + 1},", f"{i + 4}"] for i in range(3)
    ]
    together = timeline_table(pipeline("1f1b", devices=1), 80)
    assert together.splitlines()[3].split()[:2] == ["gpu0", "1"]


def test_who_lacks_memory_is_named() -> None:
    text = timeline_table(pipeline("interleaved"), 80)
    assert text.splitlines()[-1] == "gpu0 needs more memory than it has"
    assert "needs more" not in timeline_table(pipeline("1f1b"), 80)


def test_replicas_that_no_sample_comes_to_are_last() -> None:
    """Three copies take turns with two samples, in order before the stage that follows them."""
    graph = Graph.from_arrays({"gpu": [3.0, 1.0]}, [(0, 1)])
    gpus = Devices((DeviceKind("gpu", 4),))
    timeline = simulate(
        graph, gpus, {0: "gpu0", 1: "gpu3"}, "inference", 2, replicas={"gpu0": ["gpu1", "gpu2"]}
    )
    rows = [line.split()[:4] for line in timeline_table(timeline, 80).splitlines()[3:]]
    assert [row[:2] for row in rows[:3]] == [["gpu0", "1"], ["gpu1", "1"], ["gpu3", "2"]]
    assert rows[3] == ["gpu2", "0", "100.0%", "0"]
