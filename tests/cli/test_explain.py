"""The commands on explanations and sizes print what the functions of Python return."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import partitioner as pt
from partitioner.cli.command_line import main
from tests.cli.test_command_line import small_workload

Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three nodes of size 3 on two accelerators of memory 9."""
    return small_workload(tmp_path)


@pytest.fixture
def plan(small: Path, tmp_path: Path, capsys: Captured) -> Path:
    path = tmp_path / "plan.json"
    assert run(capsys, "solve", small, "--output", path)[0] == 0
    return path


def test_explain_prints_sentences_or_json(small: Path, plan: Path, capsys: Captured) -> None:
    workload = pt.load(small)
    found = pt.explain(workload.graph, None, pt.load_plan(plan))
    code, out, err = run(capsys, "explain", small, plan)
    assert (code, out.strip(), err) == (0, found.summary(), "")
    code, out, _ = run(capsys, "explain", small, plan, "--format", "json", "--what-if", "more_memory")
    record = json.loads(out)
    assert code == 0 and [one["name"] for one in record["what_ifs"]] == ["more_memory"]
    assert record["bottlenecks"][0]["load"] == found.value == record["value"]


def test_explain_without_changes_solves_nothing(small: Path, plan: Path, capsys: Captured) -> None:
    code, out, _ = run(capsys, "explain", small, plan, "--no-what-if", "--format", "json")
    assert code == 0 and json.loads(out)["what_ifs"] == []


def test_an_unknown_change_is_named(small: Path, plan: Path, capsys: Captured) -> None:
    code, _, err = run(capsys, "explain", small, plan, "--what-if", "more_memry")
    assert code == 2 and "what_if = 'more_memry'" in err and "did you mean 'more_memory'?" in err


def test_diff_reads_each_plan_with_its_devices(
    small: Path, plan: Path, tmp_path: Path, capsys: Captured
) -> None:
    other = tmp_path / "other.json"
    assert run(capsys, "solve", small, "--accelerators", 3, "--output", other)[0] == 0
    code, out, _ = run(capsys, "diff", small, plan, other, "--format", "json")
    record = json.loads(out)
    assert code == 0
    assert record["value"] == [pt.load_plan(plan).value, pt.load_plan(other).value]
    code, out, _ = run(capsys, "diff", small, plan, plan)
    assert code == 0 and "No node moved." in out


def test_the_fewest_devices_and_their_plan(small: Path, tmp_path: Path, capsys: Captured) -> None:
    output = tmp_path / "fewest.json"
    limit = ("--max-time-per-sample", 2.5)
    code, out, _ = run(capsys, "fewest-devices", small, "--accelerators", 8, *limit, "--output", output)
    assert code == 0 and out.startswith("2 devices of kind accelerator suffice for at most 2.5 per sample")
    assert len(pt.load_plan(output).devices) == 2
    code, _, err = run(capsys, "fewest-devices", small, "--max-time-per-sample", 1)
    assert code == 3 and "max_time_per_sample = 1: the least time per sample on 2 devices" in err


def test_the_least_memory(small: Path, capsys: Captured) -> None:
    code, out, _ = run(capsys, "least-memory", small, "--format", "json")
    record = json.loads(out)
    assert code == 0 and (record["memory"], record["bound"]) == (6.0, 6.0)
    assert record["trials"][0]["size"] is None and record["plan"]["status"] == "optimal"


def test_the_smallest_conflict(tmp_path: Path, capsys: Captured) -> None:
    tight = small_workload(tmp_path, maxSizePerFPGA=5)
    code, out, _ = run(capsys, "conflict", tight, "--format", "json")
    record = json.loads(out)
    assert code == 0 and record["smallest"] and len(record["demands"]) == 2
    code, out, _ = run(capsys, "conflict", tight, "--memory", 6)
    assert code == 0 and "do not conflict" in out
