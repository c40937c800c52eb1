"""A file of results holds whole lines, survives a crash in the middle of one, and has one writer."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from partitioner import PartitionerError, SweepRow, WorkloadError
from partitioner.sweeps.journal import Journal, row_line

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
