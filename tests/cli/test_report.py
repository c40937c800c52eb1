"""``partitioner report`` writes a report, whole or not at all, and says what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitioner import load, solve
from partitioner.cli.command_line import main

pytest.importorskip("bokeh", reason="reports need bokeh")
WORKLOAD = Path("instances/gnmt_training.json")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of a small published network."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    workload = load(WORKLOAD)
    solve(workload.graph, workload.devices, method="dpl").save(path)
    return path


def report(plan: Path, output: Path, *options: object) -> int:
    return main(["report", str(WORKLOAD), str(plan), "--output", str(output), *map(str, options)])


def test_a_report_is_written(plan: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.html"
    assert report(plan, output, "--schedule", "gpipe", "--microbatches", 4) == 0
    text = output.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "gpipe, 4 microbatches" in text


@pytest.mark.parametrize(
    ("output", "options", "said"),
    [
        ("a.pdf", (), "must end in .html or .htm"),
        ("a.html", ("--schedule", "none"), "schedule = 'none': must be"),
        ("a.html", ("--microbatches", 0), "microbatches = 0: must be"),
        ("nowhere/a.html", (), "cannot be written"),
    ],
)
def test_what_is_refused(
    output: str, options: tuple[object, ...], said: str, plan: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert report(plan, tmp_path / output, *options) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
