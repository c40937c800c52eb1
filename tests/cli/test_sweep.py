"""``partitioner sweep``: a row for each task, files, pools from the command line, exit codes, going on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from partitioner import SweepProgress, SweepResult
from partitioner.cli import sweep as command
from tests.analysis.sweeps.tiny import workload
from tests.cli.test_command_line import Captured, run

QUICK = ("--method", "single_device", "--no-warm-up")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two workloads and a spec of them; a cluster is a thread."""
    for nodes in (3, 4):
        workload(nodes).save(tmp_path / f"chain{nodes}.json")
    text = '[[workloads]]\nfile = "chain*.json"\n[[pools]]\naccelerators = [1, 2]\n'
    (tmp_path / "spec.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(command, "dask_executor", thread)
    return tmp_path


@contextmanager
def thread(address: str, processes: int) -> Iterator[Executor]:
    assert (address, processes) == ("local", 1)
    with ThreadPoolExecutor(1) as executor:
        yield executor


def swept(capsys: Captured, spec: Path, *words: object) -> tuple[int, str, str]:
    return run(capsys, "sweep", spec, *QUICK, "--dask", "local", "--processes", 1, *words)


def test_a_folder_on_pools_of_the_command_line(capsys: Captured, folder: Path) -> None:
    given = ("--accelerators", "1,2,3", "--memory", "2,16GiB", "--objective", "throughput,gpipe")
    code, out, err = swept(capsys, folder, *given, "--format", "json")
    rows = json.loads(out)["rows"]
    assert (code, err, len(rows)) == (0, "", 2 * 3 * 2 * 2)
    assert [row["pool"] for row in rows[:12:2]] == [
        f"{n} x {memory}" for n in (1, 2, 3) for memory in ("2", "16GiB")
    ]
    assert [row["status"] for row in rows[:4]] == ["infeasible"] * 2 + ["optimal"] * 2


def test_files_and_going_on(capsys: Captured, folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    output, plans, picture = folder / "rows.csv", folder / "plans", folder / "picture.svg"
    words = (folder / "spec.toml", "--output", output, "--plans", plans, "--picture", picture)
    code, out, err = swept(capsys, *words)
    assert (code, err) == (0, "") and out.startswith("4 of 4 tasks done, 0 failed, ")
    assert len(output.read_text(encoding="utf-8").splitlines()) == 5
    assert len(list(plans.iterdir())) == 4 and picture.read_bytes().startswith(b"<?xml")
    code, out, err = swept(capsys, *words, "--accelerators", "1,2,3")
    assert (code, err) == (0, "") and out.startswith("6 of 6 tasks done, 4 of them before, 0 failed, ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--backend", "none"), 4, "4 of 4 tasks failed"),
        (("--memory", "1"), 4, "no task found a plan"),
        (("--objective", "thruput"), 2, "objective = 'thruput': must be one of throughput"),
        (("--memory", "1Gx"), 2, "argument --memory: '1Gx': must be a number of bytes"),
        (("--accelerators", "1,x"), 2, "argument --accelerators: '1,x': must be whole numbers"),
        (("--accelerators", "70000"), 2, "accelerators = 70000: must be an integer from 0 to 65,536"),
        (("--output", "rows.xls"), 2, "results = 'rows.xls': must end in one of"),
        (("--picture", "a.gif"), 2, "--picture a.gif: must end in one of .png, .svg, .pdf"),
        (("--picture", "none/a.svg"), 2, "none/a.svg: cannot be written"),
        (("--devices", "none.json"), 2, "none.json: file: No such file"),
        (("--bandwidth", "3"), 2, "bandwidth means nothing to a spec"),
    ],
)
def test_exit_codes(capsys: Captured, folder: Path, words: tuple[str, ...], code: int, message: str) -> None:
    try:
        found, _, err = swept(capsys, folder / "spec.toml", *words)
    except SystemExit as wrong_usage:
        found, err = int(str(wrong_usage)), capsys.readouterr().err
    assert found == code and message in err


def test_ctrl_c_says_how_to_go_on(capsys: Captured, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, on_progress: Any, **options: object) -> SweepResult:
        on_progress(SweepProgress(0, 0, 4, 0, 1.0))
        return SweepResult((), 4, 0, 1.0)

    def twice(*arguments: object, **options: object) -> SweepResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "sweep", twice)
    code, out, err = swept(capsys, folder / "spec.toml", "--output", "rows.csv")
    assert (code, out) == (130, "")
    assert err == "partitioner: interrupted; the same command goes on from rows.csv\n"
    monkeypatch.setattr(command, "sweep", interrupted)
    code, out, err = swept(capsys, folder / "spec.toml", "--output", "rows.csv")
    assert code == 130 and out.startswith("0 of 4 tasks done")
    assert "interrupted: 0 of 4 tasks are done; the same command goes on from rows.csv" in err
