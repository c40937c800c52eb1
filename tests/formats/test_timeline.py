"""A timeline file says all that a timeline does; what it should not say is told with its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import PartitionerError, WorkloadError, load_timeline
from partitioner.formats.timeline import FIELDS, ROW_FIELDS
from partitioner.schedule import Timeline
from tests.schedule.runs import every_run, pipeline

RUNS = every_run()
RECORD = json.loads(pipeline("1f1b").to_json())
FEW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY = settings(FEW, max_examples=300)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.floats() | st.sampled_from(["gpu0", "0F0", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from((*FIELDS, *ROW_FIELDS)), inner, max_size=4)
    ),
    max_leaves=12,
)


def read(tmp_path: Path, data: Any) -> Timeline:
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return load_timeline(path)


@pytest.mark.parametrize("name", RUNS)
def test_a_timeline_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    """Every array to the last bit, and so every figure and the file."""
    before, path = RUNS[name], tmp_path / "timeline.json"
    before.save(path)
    after = load_timeline(path)
    assert after.to_json() == before.to_json()
    assert (after.schedule, after.bound, after.table.at_once) == (
        before.schedule,
        before.bound,
        before.table.at_once,
    )
    for field in ("begin", "end", "peak_memory", "memory_limit", "in_flight", "busy"):
        assert np.array_equal(getattr(after, field), getattr(before, field))
    for field in ("start", "stage", "microbatch", "direction"):
        assert np.array_equal(getattr(after.table, field), getattr(before.table, field))
    assert list(after.operations()) == list(before.operations())


def test_no_limit_is_null(tmp_path: Path) -> None:
    data = copy.deepcopy(RECORD)
    data["devices"][1]["memory_limit"] = None
    found = read(tmp_path, data)
    assert np.isinf(found.memory_limit).tolist() == [False, True, False] and found.fits[1]


def test_figures_that_follow_may_be_left_out(tmp_path: Path) -> None:
    data = copy.deepcopy(RECORD)
    for field in ("makespan", "time_per_sample", "microbatches", "at_once"):
        del data[field]
    for device in data["devices"]:
        del device["busy"], device["bubble"]
    assert read(tmp_path, data).makespan == RECORD["makespan"]


def test_a_timeline_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PartitionerError, match="cannot be written"):
        RUNS["gpipe, training"].save(tmp_path / "missing" / "timeline.json")


def put(*path: Any) -> Callable[[Any], None]:
    """A function that sets what is at a path to the last of the arguments."""

    def change(data: Any) -> None:
        for key in path[:-2]:
            data = data[key]
        data[path[-2]] = path[-1]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("format", "plan"), "file: format = 'plan': must be 'partitioner-timeline-1'"),
        (put("bound", -1), "file: bound = -1: must be a finite number of at least 0"),
        (put("at_once", 0), "file: at_once = 0: must be a whole number of at least 1, or null"),
        (put("colour", 1), "file: colour: is not a field; these are format,"),
        (put("devices", []), "file: devices = []: must not be empty"),
        (put("makespan", 1.0), "file: makespan = 1.0: must be 69, which follows from the rest of the file"),
        (put("microbatches", 7), "file: microbatches = 7.0: must be 6, which follows from the rest"),
        (put("devices", 0, "peak_memory", 3), "devices[0]: peak_memory = 3.0: must be 28, which follows"),
        (put("devices", 2, "bubble", 0.0), "devices[2]: bubble = 0.0: must be"),
        (put("devices", 1, "name", "gpu0"), "devices[1]: name = 'gpu0': is given twice"),
        (put("devices", 1, "passes", 0, "0F0"), "devices[1]: passes = '0F0': is given twice"),
        (put("devices", 1, "passes", 0, "1X0"), "must read as stage, F, B, I or W, and microbatch"),
        (put("devices", 1, "passes", []), "devices[1]: passes: has 0 entries, but begin has 12 and end 12"),
        (put("devices", 1, "begin", 0, [0, 1]), "devices[1]: begin = [[0, 1], "),
        (put("devices", 1, "end", 0, [0, 0, 0, 0]), "devices[1]: end[0] = [0.0, 0.0, 0.0, 0.0]: must not"),
        (
            put("devices", 1, "begin", 0, [0, 0, 0, 0]),
            "devices[1]: begin[0] = [0.0, 0.0, 0.0, 0.0]: processing must follow",
        ),
        (put("devices", 0, "memory", "time", [0]), "devices[0].memory: used: has 25 entries, but time has 1"),
        (put("devices", 0, "memory", "time", 0, 9), "devices[0].memory: time: must not decrease"),
        (put("devices", 0, "memory", 5), "devices[0]: memory = 5: must be a JSON object"),
        (put("devices", 0, "in_flight", 0.5), "devices[0]: in_flight = 0.5: must be a whole number"),
        (put("devices", 0, "memory_limit", "16G"), "devices[0]: memory_limit = '16G': must be a number"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, change: Callable[[Any], None], message: str) -> None:
    data = copy.deepcopy(RECORD)
    change(data)
    with pytest.raises(WorkloadError) as error:
        read(tmp_path, data)
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path))


@FEW
@given(data=st.data())
def test_a_timeline_or_a_workload_error(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever stands in place of a part of a sound file, or is left out of it."""
    read_or_refuse(tmp_path, data)


@pytest.mark.slow
@MANY
@given(data=st.data())
def test_a_timeline_or_a_workload_error_often(tmp_path: Path, data: st.DataObject) -> None:
    read_or_refuse(tmp_path, data)


def read_or_refuse(tmp_path: Path, data: st.DataObject) -> None:
    """Replace or delete a drawn part of the sound record; anything but a `WorkloadError` escapes."""
    record = copy.deepcopy(RECORD)
    target = record
    while isinstance(target, dict | list) and target:
        keys = sorted(target) if isinstance(target, dict) else range(len(target))
        key = data.draw(st.sampled_from(keys))
        inner = target[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        target = inner
    if isinstance(target, dict) and data.draw(st.booleans()):
        del target[key]
    else:
        target[key] = data.draw(VALUE)
    try:
        found = read(tmp_path, record)
    except WorkloadError as error:
        assert error.flaws
    else:
        assert found.makespan >= 0 and read(tmp_path, json.loads(found.to_json())).makespan == found.makespan
