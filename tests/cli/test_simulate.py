"""``partitioner simulate`` prints what the simulation says and writes the files that are asked for."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from partitioner import load, load_plan, load_timeline
from partitioner.cli.command_line import main
from partitioner.schedule import simulate
from tests.instances import write

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Four nodes in a row, four backward nodes the other way round; two accelerators."""
    nodes = [
        {
            "id": i,
            "supportedOnFpga": 1,
            "cpuLatency": 9,
            "fpgaLatency": 1 + (i >= 4),
            "isBackwardNode": int(i >= 4),
            "size": 3,
            "colorClass": min(i, 7 - i),
        }
        for i in range(8)
    ]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0.25} for i in range(7)]
    content = {"maxSizePerFPGA": 99, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    return write(tmp_path, content, "training.json")


@pytest.fixture
def plan(training: Path, tmp_path: Path, capsys: Captured) -> Path:
    path = tmp_path / "plan.json"
    assert main(["solve", str(training), "--output", str(path)]) == 0
    capsys.readouterr()
    return path


def run(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of ``partitioner simulate``."""
    code = main(["simulate", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_it_prints_a_table(capsys: Captured, training: Path, plan: Path) -> None:
    code, out, err = run(capsys, training, plan, "--microbatches", 8)
    assert code == 0 and err == ""
    assert out.startswith("1f1b, 8 microbatches: ") and "accelerator1" in out


def test_json_is_the_timeline(capsys: Captured, training: Path, plan: Path, tmp_path: Path) -> None:
    options = ("--microbatches", 8, "--schedule", "gpipe", "--links", "direct", "--format", "json")
    code, out, _ = run(capsys, training, plan, *options, "--output", tmp_path / "timeline.json")
    workload = load(training)
    expected = simulate(workload.graph, workload.devices, load_plan(plan), "gpipe", 8, links="direct")
    assert code == 0 and out == expected.to_json() + "\n"
    assert load_timeline(tmp_path / "timeline.json").to_json() == expected.to_json()


def test_a_schedule_goes_to_torch_and_back(
    capsys: Captured, training: Path, plan: Path, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.csv"
    first = run(capsys, training, plan, "--microbatches", 4, "--schedule", "zb-h1", "--csv", path)
    with path.open(encoding="utf-8", newline="") as file:
        assert [next(filter(None, row)) for row in csv.reader(file)] == ["0F0", "1F0"]
    code, out, _ = run(capsys, training, plan, "--schedule", path)
    assert code == 0 and out.splitlines()[1:] == first[1].splitlines()[1:]
    assert out.startswith("table, 4 microbatches: ")


def test_schedules_are_compared(capsys: Captured, training: Path, plan: Path, tmp_path: Path) -> None:
    """And one trace shows them all."""
    options = ("--microbatches", 4, "--compare", "--trace", tmp_path / "trace.json")
    code, out, _ = run(capsys, training, plan, *options)
    assert code == 0 and out.startswith("4 microbatches: ") and "gpipe" in out
    found = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    names = {event["args"]["name"] for event in found if event["name"] == "process_name"}
    assert {"gpipe", "1f1b", "zb-h1"} <= names
    record = json.loads(run(capsys, training, plan, *options, "--format", "json")[1])
    assert names == {one["schedule"] for one in record["schedules"] if "makespan" in one}


def test_a_comparison_with_a_schedule_writes_its_files(
    capsys: Captured, training: Path, plan: Path, tmp_path: Path
) -> None:
    path = tmp_path / "timeline.json"
    options = ("--microbatches", 4, "--compare", "--schedule", "gpipe", "--output", path)
    code, out, _ = run(capsys, training, plan, *options)
    assert code == 0 and "zb-h1" in out and load_timeline(path).schedule == "gpipe"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "microbatches = None: must be an integer of at least 1"),
        (["--microbatches", "0"], "microbatches = 0: must be an integer of at least 1"),
        (["--microbatches", "4", "--schedule", "waltz"], "schedule = 'waltz': must be a Table, or one of"),
        (["--microbatches", "4", "--schedule", "inference"], "is for graphs without backward nodes"),
        (["--schedule", "missing.csv"], "missing.csv: file: No such file"),
        (["--microbatches", "4", "--compare", "--csv", "s.csv"], "--compare needs --schedule with them"),
        (["--microbatches", "4", "--output", "missing/t.json"], "cannot be written"),
        (["--microbatches", "4", "--trace", "missing/t.json"], "cannot be written"),
        (["--microbatches", "4", "--csv", "missing/t.csv"], "cannot be written"),
    ],
)
def test_bad_input_exits_with_2(
    capsys: Captured,
    training: Path,
    plan: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    text: str,
) -> None:
    monkeypatch.chdir(training.parent)
    code, _, err = run(capsys, training, plan, *options)
    assert code == 2 and err.startswith("partitioner: ") and text in err


def test_a_plan_with_several_stages_on_a_device_is_simulated(
    capsys: Captured, training: Path, tmp_path: Path
) -> None:
    target = tmp_path / "virtual.json"
    options = ["--schedule", "zbv", "--microbatches", "8", "--output", str(target)]
    assert main(["solve", str(training), *options]) == 0
    capsys.readouterr()
    code, out, _ = run(capsys, training, target)
    assert code == 0 and out.startswith("zbv, 8 microbatches")
    assert load_plan(target).stage_of is not None
