"""Every field of an effort is tried at half and at twice its value, and is as before afterwards."""

from __future__ import annotations

import effort_values
import pytest

from partitioner.methods.latency import search


def test_each_number_has_two_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(effort_values, "SEEDS", range(1))
    usual = search.EFFORT
    file = str(effort_values.INSTANCES / "gnmt_inference.json")
    assert effort_values.main(["layouts", "--workloads", file]) == 0
    rows = capsys.readouterr().out.splitlines()[3:]
    assert [row.split()[1] for row in rows[:4]] == ["rounds", "rounds", "moves", "moves"]
    assert len(rows) == 2 * sum(field != "mixes" for field in vars(usual))
    assert search.EFFORT is usual


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert effort_values.main(["layouts", "--workloads", "nowhere.json"]) == effort_values.BAD_INPUT
    assert "nowhere.json" in capsys.readouterr().err
