"""The table of placers counts, for each, the graphs on which it is the best one and the only best one."""

from __future__ import annotations

from pathlib import Path

import bench_portfolio
import pytest

WORKLOAD = Path(__file__).resolve().parents[2] / "instances" / "bert24_inference.json"


def test_a_placer_is_best_or_the_only_best_one() -> None:
    values = [{"heft": 1.0, "etf": 1.0, "dpos": 3.0}, {"heft": 1.1, "etf": 1.0}, {"heft": 2.0}]
    assert bench_portfolio.row("heft", values) == ["heft", "2", "1", "inf", "inf"]
    assert bench_portfolio.row("etf", values) == ["etf", "2", "1", "10.0", "10.0"]
    assert bench_portfolio.row("dpos", values) == ["dpos", "0", "0", "-", "-"]


def test_every_placer_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_portfolio.main([str(WORKLOAD), "--seeds", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(" graphs") and len(lines) == 3 + len(bench_portfolio.NAMES)
