"""After a warm-up no call compiles anything, and no process is left behind, also if the warm-up is ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from partitioner import OptionError, PartitionerError, Progress
from partitioner.methods.solvers.backends.backend import SolverLimits
from partitioner.planning.warm_up import run, worker
from partitioner.planning.warm_up.calls import small_calls

FAKES = "tests.planning.warm_up.fake_calls"
ROOT = Path(__file__).parents[3]
SEEDS = 40


def children() -> int:
    """How many processes this one has started that still run."""
    return len(psutil.Process().children(recursive=True))


@pytest.fixture
def three_calls(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Three calls that are made by a function which the test chooses."""
    monkeypatch.setattr(run, "small_calls", lambda: [None] * 3)
    return monkeypatch


def test_kernels_and_calls_are_counted(three_calls: pytest.MonkeyPatch) -> None:
    three_calls.setattr(run, "PLACE", f"{FAKES}:compiled_two")
    seen: list[Progress] = []
    done = run.warm_up(workers=2, on_progress=seen.append)
    assert (done.kernels, done.folder) == (6, "/cache/numba") and done.seconds > 0
    assert (seen[-1].phase, seen[-1].done, seen[-1].total) == ("compiling", 3, 3)
    assert children() == 0


def test_a_call_that_fails_ends_it_with_the_reason(three_calls: pytest.MonkeyPatch) -> None:
    three_calls.setattr(run, "PLACE", f"{FAKES}:fails")
    with pytest.raises(PartitionerError, match="warm-up: ValueError: call 0 is broken"):
        run.warm_up(workers=1)
    assert children() == 0


def test_ctrl_c_ends_the_processes(three_calls: pytest.MonkeyPatch) -> None:
    three_calls.setattr(run, "PLACE", f"{FAKES}:never_ends")

    def press(progress: Progress) -> None:
        if children():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.warm_up(workers=1, on_progress=press)
    assert children() == 0


@pytest.mark.parametrize("given", [{"workers": 0}, {"workers": "two"}, {"on_progress": 1}])
def test_a_wrong_argument_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(given))):
        run.warm_up(**given)


def test_kernels_that_cannot_be_kept_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled then: it would be lost with the process."""
    monkeypatch.setattr(worker, "kernel_folder", lambda: None)
    monkeypatch.setattr(worker, "small_calls", lambda: pytest.fail("a call was made"))
    answer = worker.run_call(0, SolverLimits(), lambda values, bound: None)
    assert answer.stop == "failed" and answer.native.startswith("kernels cannot be kept")


def test_a_call_says_what_it_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise PartitionerError("no solver is installed")

    monkeypatch.setattr(worker, "small_calls", lambda: [refused])
    answer = worker.run_call(0, SolverLimits(), lambda values, bound: None)
    assert answer.values[0] == 0 and Path(answer.values[1]).is_dir()


def fresh(folder: Path, *words: object) -> str:
    """What a fresh process prints that keeps its kernels in the folder."""
    command = [sys.executable, "-m", *map(str, words)]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_other_calls_compile_nothing_after_it(tmp_path: Path) -> None:
    """Of every method and objective, on other graphs and devices, in a process of their own."""
    record = json.loads(fresh(tmp_path, "partitioner", "warm-up", "--format", "json"))
    assert record["kernels"] > len(small_calls()) and record["folder"].startswith(str(tmp_path))
    assert fresh(tmp_path, "tests.planning.warm_up.other_calls", 0, SEEDS).split() == []
    again = json.loads(fresh(tmp_path, "partitioner", "warm-up", "--format", "json"))
    assert again["kernels"] == 0
