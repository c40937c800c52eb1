"""A file of results holds whole lines whose fields are checked, survives a crash, and has one writer."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from partitioner import PartitionerError, SweepRow, WorkloadError
from partitioner.analysis.sweeps.journal import Journal, row_line
from partitioner.analysis.sweeps.result import SweepResult

ROWS = [SweepRow(f"k{i}", "a", "b", 2, "throughput", "optimal", {"gap": 0.1}, 1.5, 1.25) for i in range(3)]


def test_rows_come_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for row in ROWS:
        with closing(Journal(path)) as journal:
            journal.append(row)
    with closing(Journal(path)) as journal:
        assert list(journal.rows.values()) == ROWS


@pytest.mark.parametrize("cut", [1, 10, 60, 200])
def test_a_torn_line_is_removed_and_nothing_else(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows.jsonl"
    text = "".join(map(row_line, ROWS))
    path.write_text(text[:-cut], encoding="utf-8")
    with closing(Journal(path)) as journal:
        assert list(journal.rows.values()) == ROWS[:2]
        journal.append(ROWS[2])
    assert path.read_text(encoding="utf-8") == text


def test_a_first_line_that_is_torn_leaves_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(row_line(ROWS[0])[:20], encoding="utf-8")
    with closing(Journal(path)) as journal:
        assert journal.rows == {} and path.stat().st_size == 0


@pytest.mark.parametrize("line", ["{}", "nonsense", '{"key": 1}', '{"nodes": []}', "[]", "\x00"])
def test_another_file_is_refused_and_not_changed(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{row_line(ROWS[0])}{line}\n", encoding="utf-8")
    for content in (path.read_bytes(), path.read_bytes()[:-1]):
        path.write_bytes(content)
        with pytest.raises(WorkloadError, match=r"rows.jsonl: line 2: .*must be a row of a sweep"):
            Journal(path)
        assert path.read_bytes() == content


def test_two_sweeps_cannot_write_one_file(tmp_path: Path) -> None:
    words = r"rows.jsonl: another sweep writes this file"
    with closing(Journal(tmp_path / "rows.jsonl")), pytest.raises(PartitionerError, match=words):
        Journal(tmp_path / "rows.jsonl")
    with pytest.raises(PartitionerError, match=r"none/rows.jsonl: cannot be written: No such file"):
        Journal(tmp_path / "none" / "rows.jsonl")


NESTED = "[" * 30 + "]" * 30
NOT_A_ROW = "must be a row of a sweep"


@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("workload", "3", "must be a text"),
        ("pool", '"\\ud800"', "must be a text that UTF-8 can write"),
        ("devices", '"2"', "must be an integer"),
        ("devices", "1e3", "must be an integer"),
        ("used", "-1", "must be an integer of at least 0"),
        ("attempts", "true", "must be an integer"),
        ("devices", "1" * 5000, NOT_A_ROW),
        ("value", '"fast"', "must be a finite number or null"),
        ("value", "1e999", "must be a finite number or null"),
        ("bound", "NaN", "must be a finite number or null"),
        ("value", "null", "since value or bound is missing"),
        ("seconds", "-1", "must be a finite number of at least 0"),
        ("status", '"done"', "must be one of optimal, feasible, infeasible, no plan, failed"),
        ("options", "[]", "must be an object"),
        ("options", f'{{"a": {NESTED}}}', "at most 20 levels deep"),
        ("options", "[" * 100_000, NOT_A_ROW),
        ("options", '{"a": Infinity}', "must be an object of finite numbers"),
        ("key", '"../k"', "must be a text of letters and digits"),
        ("plan", '"../../../etc/passwd"', "must be empty or the row's key with .json"),
        ("plan", '"other.json"', "must be empty or the row's key with .json"),
    ],
)
def test_every_field_is_checked(tmp_path: Path, field: str, text: str, rule: str) -> None:
    path = tmp_path / "rows.jsonl"
    record: dict[str, Any] = asdict(ROWS[0]) | {field: "HERE"}
    content = json.dumps(record).replace('"HERE"', text) + "\n"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(WorkloadError, match=rf"rows.jsonl: line 1: .*{rule}"):
        Journal(path)
    assert path.read_text(encoding="utf-8") == content


def test_rows_that_are_accepted_can_be_shown_and_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    odd = {"options": {"a": [1, {"b": None}]}, "value": 10**30, "bound": -1.5, "reason": "\x1b[2J"}
    lines = [json.dumps(asdict(row) | odd | {"plan": f"{row.key}.json"}) for row in ROWS]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with closing(Journal(path)) as journal:
        result = SweepResult(tuple(journal.rows.values()), 3, 3, 0.0)
    assert result.summary() and result.to_json() and result.front("a")
    for suffix in ("csv", "jsonl"):
        result.save(tmp_path / f"again.{suffix}")


def test_a_full_disk_is_no_other_error(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(PartitionerError, match="No space left"), closing(Journal(tmp_path / "a")) as journal:
        journal._file.close()
        journal._file = full.open("a+b")
        journal.append(ROWS[0])


def test_only_a_plain_file_is_read(tmp_path: Path) -> None:
    zero = Path("/dev/zero")
    if not zero.exists():
        pytest.skip("this system has no /dev/zero")
    (tmp_path / "rows.jsonl").symlink_to(zero)
    with pytest.raises(PartitionerError, match="must be a plain file"):
        Journal(tmp_path / "rows.jsonl")
