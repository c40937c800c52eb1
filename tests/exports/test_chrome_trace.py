"""A trace shows every operation of its runs, on threads where no two slices overlap."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from partitioner import OptionError
from partitioner.exports.chrome_trace import chrome_trace, save_chrome_trace
from tests.schedule.runs import every_run, pipeline

RUNS = every_run()


def events(text: str, phase: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


def threads(text: str) -> dict[int, str]:
    """Thread names by number."""
    found = [event for event in events(text, "M") if event["name"] == "thread_name"]
    assert len({event["tid"] for event in found}) == len(found)
    return {event["tid"]: event["args"]["name"] for event in found}


@pytest.mark.parametrize("name", RUNS)
def test_every_operation_is_there(name: str) -> None:
    """With its device, part, stage, pass, microbatch and times: a unit of the graph is a millisecond."""
    timeline, text = RUNS[name], chrome_trace(RUNS[name])
    title = threads(text)
    expected = [
        (
            operation.device if operation.part == "compute" else f"{operation.device} {operation.part}",
            f"{operation.direction}{operation.microbatch}",
            {"stage": operation.stage, "microbatch": operation.microbatch},
            pytest.approx(1000 * operation.start),
            pytest.approx(1000 * (operation.end - operation.start)),
        )
        for operation in timeline.operations()
    ]
    found = [
        (title[event["tid"]], event["name"], event["args"], event["ts"], event["dur"])
        for event in events(text, "X")
    ]
    assert found == expected


def test_runs_are_processes_of_their_own() -> None:
    text = chrome_trace(RUNS)
    names = [event for event in events(text, "M") if event["name"] == "process_name"]
    assert [event["args"]["name"] for event in names] == list(RUNS)
    assert len({event["pid"] for event in names}) == len(RUNS) and min(e["pid"] for e in names) > 0
    process: dict[int, set[int]] = defaultdict(set)
    for event in events(text, "X"):
        process[event["tid"]].add(event["pid"])
    assert all(len(owners) == 1 for owners in process.values())
    assert set(process) == set(threads(text))


@pytest.mark.parametrize("milliseconds", [1, 1 / 3, 1e-4])
def test_no_slice_begins_before_the_last_one_ends(milliseconds: float) -> None:
    """Also for a reader that cuts off what is less than a nanosecond."""
    text = chrome_trace(RUNS, milliseconds=milliseconds)
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in events(text, "X"):
        begin = int(event["ts"] * 1000)
        rows[event["tid"]].append((begin, begin + int(event["dur"] * 1000)))
    assert len(rows) > 20
    for row in rows.values():
        row.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(row))


def test_a_counter_a_device_shows_its_memory() -> None:
    timeline = RUNS["1f1b, training"]
    found = events(chrome_trace(timeline), "C")
    for name, memory in zip(timeline.devices, timeline.memory, strict=True):
        own = [event for event in found if event["name"] == f"memory {name}"]
        assert [event["ts"] for event in own] == pytest.approx((1000 * memory.time).tolist())
        assert [event["args"]["used"] for event in own] == memory.used.tolist()


def test_the_unit_of_time_scales(tmp_path: Path) -> None:
    timeline = pipeline("gpipe")
    save_chrome_trace(timeline, tmp_path / "trace.json", milliseconds=0.5)
    found = events((tmp_path / "trace.json").read_text(encoding="utf-8"), "X")
    assert max(event["ts"] + event["dur"] for event in found) == pytest.approx(500 * timeline.makespan)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_unit_is_a_positive_number(value: Any) -> None:
    with pytest.raises(OptionError, match="milliseconds = "):
        chrome_trace(pipeline("gpipe"), milliseconds=value)
