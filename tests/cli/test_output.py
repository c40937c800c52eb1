"""Files are written before text, never over what a command reads, and lost output has the right exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from partitioner.cli.command_line import main
from tests.cli.test_command_line import small_workload

PROGRAM = [sys.executable, "-m", "partitioner"]
FULL = Path("/dev/full")


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return small_workload(tmp_path)


@pytest.fixture
def plan(tmp_path: Path, workload: Path) -> Path:
    assert main(["solve", str(workload), "--output", str(tmp_path / "plan.json")]) == 0
    return tmp_path / "plan.json"


def into_closed_pipe(*words: object) -> int:
    """Run a command whose text nobody reads; return its exit code."""
    command = [*PROGRAM, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b""
    return program.returncode


@pytest.mark.parametrize(
    "command",
    [
        ("solve",),
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                ("compare", "--methods", "dp,greedy"),
                ("fewest-devices", "--max-time-per-sample", "100"),
                ("least-memory", "--max-time-per-sample", "100"),
            )
        ),
    ],
)
def test_a_plan_is_written_though_nobody_reads_the_text(
    workload: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    written = tmp_path / "written.json"
    name, *options = command
    assert into_closed_pipe(name, workload, *options, "--output", written) == 141
    assert set(json.loads(written.read_text(encoding="utf-8"))["placement"]) == {"0", "1", "2"}


@pytest.mark.slow
def test_other_files_are_written_though_nobody_reads_the_text(
    workload: Path, plan: Path, tmp_path: Path
) -> None:
    files = {"--output": tmp_path / "timeline.json", "--trace": tmp_path / "trace.json"}
    words = [word for pair in files.items() for word in pair]
    assert into_closed_pipe("simulate", workload, plan, "--microbatches", 4, *words) == 141
    assert all(json.loads(file.read_text(encoding="utf-8")) for file in files.values())
    spec, picture = tmp_path / "spec.toml", tmp_path / "sweep.svg"
    spec.write_text(f"workloads = [{str(workload)!r}]\n", encoding="utf-8")
    assert into_closed_pipe("sweep", spec, "--processes", 1, "--no-warm-up", "--picture", picture) == 141
    assert picture.stat().st_size > 0


@pytest.mark.parametrize("through", ["", "link"])
def test_no_input_is_written_over(
    workload: Path, plan: Path, tmp_path: Path, through: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(workload)
    target = tmp_path / "link" if through else workload
    before = workload.read_bytes(), plan.read_bytes()
    for words in (
        ("solve", workload, "--output", target),
        ("compare", workload, "--methods", "dp", "--output", target),
        ("recommend", workload, "--microbatches", "4", "--output", target),
        ("fewest-devices", workload, "--output", target),
        ("simulate", workload, plan, "--trace", target),
        ("export", workload, plan, "--to", "json", "--output", target),
        ("plot", workload, plan, "--output", target),
        ("report", workload, plan, "--output", target),
        ("solve", plan, "--devices", workload, "--output", target),
    ):
        assert main([str(word) for word in words]) == 2
        said = capsys.readouterr().err
        assert "is what the command reads as" in said and "must be a file of its own" in said
    assert main(["simulate", str(workload), str(plan), "--output", str(plan)]) == 2
    assert (workload.read_bytes(), plan.read_bytes()) == before


def test_two_results_need_two_files(
    workload: Path, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = str(tmp_path / "one.json")
    assert main(["simulate", str(workload), str(plan), "--output", one, "--trace", one]) == 2
    assert "is --trace as well: must be a file of its own" in capsys.readouterr().err
    assert not Path(one).exists()


def test_the_text_is_printed_though_the_file_cannot_be_written(
    workload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not FULL.exists():
        pytest.skip("this system has no /dev/full")
    assert main(["solve", str(workload), "--output", str(FULL)]) == 2
    captured = capsys.readouterr()
    assert "throughput, chain split" in captured.out and "No space left on device" in captured.err


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-"])
def test_output_that_cannot_be_written_is_said(workload: Path, redirection: str) -> None:
    text = f"{sys.executable} -m partitioner solve {workload} {redirection}"
    done = subprocess.run(text, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("partitioner: standard output: cannot be written: ")
    assert done.stderr.count("\n") == 1


def test_closed_streams_leave_files_whole(workload: Path, tmp_path: Path) -> None:
    """With closed standard streams no file that is opened later takes the place of one of them."""
    written = tmp_path / "plan.json"
    text = f"{sys.executable} -m partitioner solve {workload} --output {written} <&- 2>&- >{os.devnull}"
    assert subprocess.run(text, shell=True, check=False).returncode == 0
    assert json.loads(written.read_text(encoding="utf-8"))["status"] == "optimal"


def test_a_plan_for_another_workload_says_for_which(
    workload: Path, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert main(["evaluate", str(small_workload(other, maxCPUs=1)), str(plan)]) in (0, 2)
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 5, "isBackwardNode": 0, "size": 3}
        for i in range(2)
    ]
    capsys.readouterr()
    assert main(["evaluate", str(small_workload(other, nodes=nodes, edges=[])), str(plan)]) == 2
    assert "made for another workload named 'small' (workload_sha256 " in capsys.readouterr().err
