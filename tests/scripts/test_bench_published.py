"""Predictions of published runs are as near as the page of benchmarks says, and every run fits its GPUs."""

from __future__ import annotations

import statistics
from functools import cache
from pathlib import Path

import bench_published
import pytest
from bench_published import ROWS, SHARED, Line, all_lines, summary
from published_bench import sailor
from published_bench.layouts import copies, uniform

import partitioner as pt
from partitioner.formats.llm.server import runtime_bytes

published = pytest.mark.skipif(
    not (SHARED / ROWS).exists(), reason=f"there is no {SHARED / ROWS}, the published measurements"
)


@cache
def errors() -> dict[str, list[float]]:
    """The errors in percent by group."""
    found: dict[str, list[float]] = {}
    for line in all_lines(SHARED):
        assert "does not fit" not in line.note
        if line.error is not None:
            found.setdefault(line.group, []).append(abs(line.error) * 100)
    return found


@published
@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "count", "median", "worst"),
    [
        ("sc21", 10, 3, 9),
        ("other training", 5, 8, 15),
        ("Sailor: time", 10, 2.4, 8.5),
        ("Sailor: memory", 10, 5.5, 38),
        ("Sailor, unlike GPUs: time", 6, 4.5, 9.1),
        ("training memory", 10, 0.5, 5),
        ("vLLM's blocks", 2, 5, 5),
        ("llama.cpp's buffers", 4, 0.05, 0.05),
    ],
)
def test_predictions_are_as_near_as_the_page_says(
    group: str, count: int, median: float, worst: float
) -> None:
    found = errors()[group]
    assert len(found) == count
    assert statistics.median(found) <= median and max(found) <= worst


@published
@pytest.mark.slow
def test_only_one_of_sailors_memories_is_far() -> None:
    """`N8_D2` used 9 GB less than other runs with the same stages."""
    assert sorted(errors()["Sailor: memory"])[-2] <= 12


def test_communicators_of_a_rank() -> None:
    """Four GPUs a stage, four stages, two copies; a group of one rank keeps nothing."""
    alone = runtime_bytes(1)
    two, more = (runtime_bytes(count) - alone for count in (2, 8))
    assert sailor.kept(4, 4, 2) == alone + 3 * two + 5 * more
    assert sailor.kept(1, 1, 1) == alone


@published
def test_a_layout_of_1024_gpus_is_predicted_within_a_tenth() -> None:
    (line,) = all_lines(SHARED, ("megascale",))
    assert line.measured == 11.9 and line.error is not None and abs(line.error) < 0.1


def test_blocks_are_dealt_in_equal_numbers() -> None:
    """Six blocks between embedding and head in two chunks of three stages; in four, ends are blocks."""
    layers = [pt.Layer(name, 1.0, parameters=7.0) for name in "abcdef"]
    layers = [pt.Layer("embedding", 1.0), *layers, pt.Layer("head", 1.0, parameters=9.0)]
    graph = pt.Graph.chain(layers)
    devices = pt.Devices((pt.DeviceKind("accelerator", 8),))
    assert "".join(name[-1] for name in uniform(graph, devices, 3, 1, 2).values()) == "00120122"
    assert "".join(name[-1] for name in uniform(graph, devices, 4, 2, 1).values()) == "00224466"
    assert copies(devices, 4, 2)["accelerator4"] == ["accelerator5"]


def test_a_summary_has_median_and_worst() -> None:
    lines = [Line("x", "a", 10.0, 11.0), Line("x", "b", 10.0, 9.5), Line("x", "c", 1.0, None, "not known")]
    assert list(summary(lines)) == [("x", "2", "7.5", "10.0")]


def test_without_the_measurements_nothing_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench_published.main(["--shared", str(tmp_path)]) == 0
    assert "skipped: there is no" in capsys.readouterr().out
