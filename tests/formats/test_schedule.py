"""What a plan file says of its schedule refers to entries that the file has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from tests.instances import training, write


@pytest.fixture
def record() -> dict[str, Any]:
    plan = pt.solve(training().graph, training().devices, "latency")
    return dict(json.loads(plan.to_json()))


def test_a_sound_one_is_read(record: dict[str, Any], tmp_path: Path) -> None:
    assert "critical path" in pt.load_plan(write(tmp_path, record)).summary(80)


def test_an_entry_that_does_not_exist_is_refused(record: dict[str, Any], tmp_path: Path) -> None:
    entries = record["schedule"]["entries"]
    entries[-1]["waits_for"] = len(entries)
    rule = (
        rf"schedule.entries\[{len(entries) - 1}\]: waits_for = {len(entries)}: must be positions of entries"
    )
    with pytest.raises(pt.WorkloadError, match=rule):
        pt.load_plan(write(tmp_path, record))


@pytest.mark.parametrize("place", [-1, 1000])
def test_a_critical_path_through_none_is_refused(record: dict[str, Any], tmp_path: Path, place: int) -> None:
    record["schedule"]["critical_path"].append(place)
    with pytest.raises(
        pt.WorkloadError, match=r"critical_path = .*: must be positions of entries, from 0 to"
    ):
        pt.load_plan(write(tmp_path, record))
