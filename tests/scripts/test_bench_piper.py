"""The benchmark solves records of Piper's program again, in their mode, and counts what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bench_piper
import pytest

from tests.formats.test_piper import document
from tests.instances import write


def record(**changed: Any) -> dict[str, Any]:
    """A run on four devices; a single stage of four copies takes 10.5 / 4, and exchanges 14 bytes."""
    known = {"input": "net", "k": 4, "memory": 500.0, "bandwidth": 10.0, "N": 8, "algorithm": "piper"}
    known |= {"stages": [{"nodes": [0, 1, 2], "t": 1, "d": 4, "TMPC": ["vanilla"] * 3}]}
    value = 10.5 / 4 + 4 * 3 / (4 * 8) * 14 / 10
    return known | {"feasible": True, "time_per_sample": value, "optimum": value, "seconds": 0.1} | changed


def run(folder: Path, records: list[dict[str, Any]], *words: str) -> int:
    write(folder, document(), "net.json")
    (folder / "runs.json").write_text(json.dumps(records))
    return bench_piper.main([str(folder / "runs.json"), str(folder), *words])


def test_a_record_is_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [record()], "--format", "markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 3 + 5 and all(line.endswith("| equal |") for line in lines[2:5])
    assert lines[5] == "alternatives: 1 equal" and lines[9] == "evaluate: 1 equal"


def test_an_optimum_that_is_not_met_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [record(optimum=1.0)], "--methods", "alternatives") == 1
    assert "alternatives: 1 worse" in capsys.readouterr().out


def test_a_plan_of_the_program_that_is_worth_another_value_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, [record(memory=1.0), record(time_per_sample=4.0)], "--methods", "evaluate") == 1
    assert "evaluate: 1 none, 1 better" in capsys.readouterr().out


def test_other_modes_are_never_better_than_the_exact_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = {"time_per_sample": 11.0, "optimum": None}
    found = [record(algorithm="recomp_all_or_none"), record(algorithm="2bw_equi_tp_nosep", **slow)]
    assert run(tmp_path, found, "--methods", "freer") == 0
    assert "freer: 1 equal, 1 better" in capsys.readouterr().out


def test_modes_restrict_the_options() -> None:
    assert bench_piper.modes(record(algorithm="no_tp_no_dp")) == ["no_tp", "no_dp"]
    assert bench_piper.modes(record(algorithm="recomp_all_or_none")) is None
    assert bench_piper.modes(record(algorithm="2bw_layers_notp")) is None
    assert bench_piper.baseline(record(algorithm="2bw_layers_notp_recomp")) == ["no_tp", "recomp_forced"]
    assert bench_piper.baseline(record(algorithm="2bw_equi_notp_nosep", input="bert")) is None
    assert bench_piper.freer(record(algorithm="2bw_equi_notp_nosep")) == ["no_tp"]
    assert bench_piper.freer(record(algorithm="2bw_equi_tp_sep_vanilla")) == ["no_recomp"]
    assert bench_piper.freer(record(algorithm="no_tp")) is None
    assert bench_piper.rules_of(record(feasible=False), "evaluate") is None


def test_bad_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_piper.main([str(tmp_path / "none.json"), str(tmp_path)]) == 2
    assert "none.json" in capsys.readouterr().err
