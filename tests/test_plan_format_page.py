"""`docs/plan_format.md` names exactly the fields that files of plans, constraints and timelines have."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.schedule import Run, Schedule
from partitioner.formats.timeline import FIELDS as TIMELINE_FIELDS
from partitioner.formats.timeline import ROW_FIELDS
from partitioner.results.by_stage import StageLoad
from partitioner.schedule import simulate

PAGE = (Path(__file__).parents[1] / "docs" / "plan_format.md").read_text(encoding="utf-8")
GNMT = Path(__file__).parents[1] / "instances" / "gnmt_training.json"
ONLY_IN_FILES = {"format", "gap", "text_ids"}


def names(*classes: Any) -> set[str]:
    """The names of the fields of classes."""
    return {entry.name for each in classes for entry in fields(each)}


def documented(title: str, place: int = 0) -> set[str]:
    """The fields in the first column of a table below a heading."""
    section = "\n" + PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    table = section.split("\n\n| field")[place + 1].split("\n\n")[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


@pytest.mark.parametrize(
    ("title", "place", "known"),
    [
        ("A plan", 0, names(pt.Plan) | ONLY_IN_FILES),
        ("A plan", 1, names(DeviceLoad)),
        ("A plan", 2, names(StageLoad)),
        ("Constraints", 0, names(pt.Constraints)),
        ("Transfers", 0, names(pt.Transfers)),
        ("A timeline", 0, set(TIMELINE_FIELDS)),
        ("A timeline", 1, set(ROW_FIELDS)),
    ],
)
def test_the_tables_have_all_fields_and_no_others(title: str, place: int, known: set[str]) -> None:
    assert documented(title, place) == known


def test_the_fields_of_schedules_are_named() -> None:
    text = PAGE.partition("`schedule` has `entries`")[2].partition("\n## ")[0]
    assert names(Run, Schedule) - {"entries"} <= set(re.findall(r"`(\w+)`", text))


def test_written_files_have_these_fields() -> None:
    workload = pt.load(GNMT)
    plan = pt.solve(workload.graph, workload.devices)
    written = json.loads(plan.to_json())
    assert set(written) <= documented("A plan") and written["format"] in PAGE
    timeline = json.loads(simulate(workload.graph, workload.devices, plan, "1f1b", 4).to_json())
    assert set(timeline) <= documented("A timeline") and timeline["format"] in PAGE
    assert set(timeline["devices"][0]) <= documented("A timeline", 1)
