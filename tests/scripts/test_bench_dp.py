"""The benchmark: what it measures, and how it compares with a program that reads the same files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from bench_dp import main
from dp_bench.measure import Reference, Result, measure
from dp_bench.reference import Run, run_reference
from dp_bench.writing import Report, as_json, as_markdown, as_text

BEST = 3.5


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    """Times 3, 1, 2, transfers 0.5, two accelerators; the best chain is 3 | 1 2 with load 3.5."""
    base = {"supportedOnFpga": True, "cpuLatency": 9.0, "isBackwardNode": False, "size": 1.0}
    nodes = [{"id": i, "fpgaLatency": time, **base} for i, time in enumerate((3.0, 1.0, 2.0))]
    edges = [{"sourceId": u, "destId": u + 1, "cost": 0.5} for u in (0, 1)]
    path = tmp_path / "chain.json"
    document = {"maxSizePerFPGA": 9.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def program(folder: Path, body: str) -> Path:
    """An executable stand-in for the compiled program."""
    path = folder / "program"
    path.write_text(f"#!{sys.executable} -S\nimport json, sys, time\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def answering(folder: Path, value: float) -> Path:
    """A stand-in that reads the workload, takes 50 MB and prints a value."""
    return program(
        folder,
        f"nodes = json.load(sys.stdin)['nodes']; block = b'x' * 50_000_000\n"
        f"print('diagnostics', file=sys.stderr)\nprint(json.dumps({{'maxLoad': {value}, 'fpgas': nodes}}))",
    )


def test_a_run_of_the_reference_program(tmp_path: Path, chain_file: Path) -> None:
    run = run_reference(answering(tmp_path, BEST), chain_file, timeout=60)
    assert run.failure == "" and run.value == BEST
    assert run.seconds is not None and 0 < run.seconds < 60
    assert run.peak_bytes is not None and 50_000_000 < run.peak_bytes < 120_000_000


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("print('FAIL: too many ideals'); sys.exit(1)", "exit code 1: FAIL: too many ideals"),
        ("sys.exit(3)", "exit code 3"),
        ("print('done')", "no JSON object with maxLoad: done"),
        ("print(json.dumps({'load': 1}))", 'no JSON object with maxLoad: {"load": 1}'),
        ("time.sleep(60)", "stopped after 0.2 s"),
    ],
)
def test_a_reference_program_that_fails(tmp_path: Path, chain_file: Path, body: str, failure: str) -> None:
    run = run_reference(program(tmp_path, body), chain_file, 0.2 if "sleep" in body else 60)
    assert run.failure == failure and run.value is None


def test_a_reference_program_that_cannot_be_run(chain_file: Path) -> None:
    assert "PermissionError" in run_reference(chain_file, chain_file, 60).failure


@pytest.mark.slow
def test_ours_and_theirs_are_run_in_turn(tmp_path: Path, chain_file: Path) -> None:
    result = measure(chain_file, "dp", 2, Reference(answering(tmp_path, BEST), 60))
    assert result.value == BEST and result.proven and result.good
    assert len(result.seconds) == len(result.runs) == 2
    assert result.supernodes == 3 and result.ideals in (4, None)
    assert result.peak_bytes is not None and result.peak_bytes > 50_000_000
    assert result.reference is not None and result.reference.value == BEST


@pytest.mark.slow
def test_a_failing_program_is_not_run_again(tmp_path: Path, chain_file: Path) -> None:
    result = measure(chain_file, "dpl", 2, Reference(program(tmp_path, "sys.exit(1)"), 60))
    assert len(result.seconds) == 2 and len(result.runs) == 1
    assert result.good


def test_a_file_that_is_no_workload_has_a_row(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text("{}", encoding="utf-8")
    result = measure(path, "dp", 1, None)
    assert "maxFPGAs" in result.failure and not result.good


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, chain_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reference program with a better value makes the exit code 1."""
    words = [str(chain_file), "--repeat", "1", "--format", "json", "--compile"]
    assert main([*words, "--reference-program", str(answering(tmp_path, 3.0))]) == 1
    answer = json.loads(capsys.readouterr().out)
    (record,) = answer["results"]
    assert record["difference"] == pytest.approx(0.5 / 3)
    assert not record["good"]
    assert answer["compiling"][0] > answer["compiling"][1]
    assert answer["baseline_bytes"] > 0


def test_files_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing.json")]) == 2
    assert "no such file" in capsys.readouterr().err


def report() -> Report:
    mebibyte = 2**20
    ours = Result("small", 3, 4, 1234, 10.0, True, (2.0, 1.0, 3.0), 200 * mebibyte)
    theirs = (Run(8.0, 50 * mebibyte, 10.0), Run(4.0, 60 * mebibyte, 10.0), Run(5.0, 40 * mebibyte, 10.0))
    compared = Result(**{**vars(ours), "workload": "compared", "runs": theirs})
    failing = Result(**{**vars(ours), "workload": "failing", "runs": (Run(failure="exit code 1"),)})
    broken = Result("broken", failure="file: is not JSON")
    return Report("dp", 3, (ours, compared, failing, broken), 150 * mebibyte, (15.0, 0.5))


def test_medians_and_ratios() -> None:
    record = json.loads(as_json(report()))["results"][1]
    assert record["median_seconds"] == 2.0 and record["difference"] == 0.0
    lines = {line.split("|")[1].strip(): line for line in as_markdown(report()).splitlines() if "|" in line}
    assert lines["compared"] == "| compared | 2.000 | 5.000 | 2.500 | 200 | 60 | 0.300 | 0 |"
    assert lines["failing"] == "| failing | 2.000 | failed | - | 200 | - | - | - |"
    assert lines["broken"] == "| broken | - | - | - | - | failed |"


def test_text_says_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = as_text(report()).splitlines()
    assert "broken: file: is not JSON" in lines
    assert "failing: reference program: exit code 1" in lines
    assert "First solves of a process: 15.0 s without compiled kernels, 0.5 s with them." in lines
    assert max(map(len, lines)) <= 80
