"""Processes of a sweep: a lost one costs its task an attempt, and none outlives the sweep or its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from partitioner import DevicePool, sweep
from partitioner.analysis.sweeps.processes import LOCAL, OneTaskProcesses, dask_executor
from partitioner.analysis.sweeps.row import FAILED, OPTIMAL
from tests.analysis.sweeps.test_sweep import driven
from tests.analysis.sweeps.tiny import METHODS, Read, killed, killed_once, task, workload

GIVEN: dict[str, Any] = {
    "workloads": [workload(3)],
    "pools": [DevicePool(accelerators=n) for n in range(1, 9)],
    "options": METHODS | {"seed": [0, 1, 2, 3, 4]},
}


@contextmanager
def processes() -> Iterator[dict[str, Any]]:
    yield {"processes": 2}


@contextmanager
def dask() -> Iterator[dict[str, Any]]:
    with dask_executor(LOCAL, 2) as executor:
        yield {"executor": executor}


EXECUTORS = {"processes": processes, "dask": dask}
PROGRAM = """
import sys
from partitioner import sweep
from tests.analysis.sweeps.test_processes import EXECUTORS as executors, GIVEN

if __name__ == "__main__":
    report = lambda progress: print(progress.done, flush=True)
    with executors[sys.argv[1]]() as given:
        sweep(**GIVEN, **given, results=sys.argv[2], warm_up=False, on_progress=report)
"""


@pytest.mark.slow
def test_a_lost_process_costs_its_task_one_attempt(tmp_path: Path) -> None:
    """The other tasks do not notice; a task that always kills its process has a row that says so."""
    executor = OneTaskProcesses(2)
    try:
        executor.start()
        tasks = [
            *(task(n) for n in range(3, 7)),
            task(graph=Read(killed)),
            task(graph=Read(killed_once, tmp_path / "mark")),
        ]
        rows = driven(executor, tasks)
    finally:
        executor.shutdown(cancel_futures=True)
    assert len(rows) == len(tasks)
    (failed,) = (row for row in rows if row.status == FAILED)
    assert failed.attempts == 2 and failed.reason.startswith("its worker was lost: BrokenProcessPool")
    assert sorted(row.attempts for row in rows if row.status == OPTIMAL) == [1, 1, 1, 1, 2]
    assert psutil.Process().children(recursive=True) == [] or _only_trackers()


def _only_trackers() -> bool:
    """Whether the children of this process are multiprocessing's own, which last as long as the process."""
    return all("tracker" in " ".join(child.cmdline()) for child in psutil.Process().children(recursive=True))


@pytest.mark.slow
def test_a_process_that_runs_a_task_ends_at_once() -> None:
    executor = OneTaskProcesses(1)
    future = executor.submit(time.sleep, 60)
    began = time.perf_counter()
    while not executor._pools or not executor._pools[0]._processes:
        assert time.perf_counter() - began < 60
        time.sleep(0.05)
    executor.shutdown(cancel_futures=True)
    assert isinstance(future.exception(), BrokenProcessPool)
    assert time.perf_counter() - began < 30


@pytest.fixture
def program(tmp_path: Path) -> Iterator[list[str]]:
    """The command of a sweep of forty tiny tasks into a file."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    yield [sys.executable, str(file), "processes", str(tmp_path / "rows.jsonl")]


def started(program: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    return subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def wait_for(process: subprocess.Popen[str], done: int) -> None:
    """Wait until so many tasks are done."""
    assert process.stdout is not None
    while int(process.stdout.readline()) < done:
        pass


def keys(program: list[str]) -> list[str]:
    text = Path(program[-1]).read_text(encoding="utf-8")
    return [json.loads(line)["key"] for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("executor", "number"),
    [("processes", signal.SIGKILL), ("processes", signal.SIGINT), ("dask", signal.SIGKILL)],
)
def test_killed_and_started_again_it_has_every_row_once(
    program: list[str], executor: str, number: signal.Signals
) -> None:
    """First a worker is killed, then the driver ends; the second call runs only what is missing."""
    if executor == "dask":
        pytest.importorskip("distributed", reason="Dask's package distributed is not installed")
    program[2] = executor
    process = started(program)
    wait_for(process, 3)
    children = psutil.Process(process.pid).children(recursive=True)
    workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    assert len(workers) == 2
    workers[0].kill()
    wait_for(process, 12)
    process.send_signal(number)
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    before = keys(program)
    assert 12 <= len(before) < 40 and len(set(before)) == len(before)
    with ThreadPoolExecutor(1) as threads:
        found = sweep(**GIVEN, results=program[-1], executor=threads, warm_up=False)
    assert (len(found.rows), found.before, found.failed) == (40, len(before), 0)
    after = keys(program)
    assert after[: len(before)] == before and len(set(after)) == len(after) == 40


@pytest.mark.slow
def test_a_program_without_a_guard_is_told(tmp_path: Path) -> None:
    """Processes import the program that started them, which would start a sweep in each of them."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.replace('__name__ == "__main__"', "True"), encoding="utf-8")
    done = started([sys.executable, str(file), "processes", str(tmp_path / "rows.jsonl")])
    errors = done.communicate(timeout=120)[1]
    assert "a program that calls sweep must do so below 'if __name__ == \"__main__\":'" in errors


@pytest.mark.parametrize("seconds", [0.1, 0.4])
def test_ctrl_c_while_processes_start_gives_no_traceback(seconds: float, tmp_path: Path) -> None:
    """The terminal sends it to all processes of the group, those that still import modules included."""
    spec = tmp_path / "spec.toml"
    workload(3).save(tmp_path / "chain.json")
    spec.write_text('[[workloads]]\nfile = "chain.json"\n', encoding="utf-8")
    command = [sys.executable, "-m", "partitioner", "sweep", str(spec), "--processes", "2"]
    sweeping = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    ours = psutil.Process(sweeping.pid)
    while not ours.children():
        time.sleep(0.01)
    time.sleep(seconds)
    os.killpg(sweeping.pid, signal.SIGINT)
    errors = sweeping.communicate(timeout=60)[1]
    assert sweeping.returncode == 130
    assert errors.startswith("partitioner: interrupted") and errors.count("\n") == 1
