"""A run leaves nothing behind: no pipe, process or thread; and handing over a job keeps nobody waiting."""

from __future__ import annotations

import gc
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pytest

from partitioner import Devices, solve
from partitioner.methods.solvers.backends.backend import Job, SolverLimits
from partitioner.methods.solvers.worker_pool import PATIENCE, Worker, WorkerPool
from tests.methods.ip.cases import hard_graph
from tests.methods.slow_parameters import slow

DEVICES = Devices.accelerated(4)
FOLDER = Path("/proc/self/fd")
LARGE = b"x" * 10_000_000  # more than any pipe holds


class FromHandlerError(Exception):
    """What the user's signal handler raises."""


def counts() -> tuple[int, int, int]:
    """Open files, child processes and threads of this process.

    Python may list a thread that has ended: where a signal handler raises within ``Thread.start``.
    """
    files = len(list(FOLDER.iterdir())) if FOLDER.exists() else 0
    alive = sum(thread.is_alive() for thread in threading.enumerate())
    return files, len(psutil.Process().children(recursive=True)), alive


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_workers_that_do_not_end_are_waited_for_together() -> None:
    """A thread that hears nothing of the end of its process holds up the run once, not for each worker."""
    free = threading.Event()
    with closing(WorkerPool()) as pool:
        for _ in range(3):
            worker = pool.start()
            while worker.process is None or len(worker.threads) < 2:
                time.sleep(0.01)
            worker.threads.append(threading.Thread(target=free.wait, daemon=True))
            worker.threads[-1].start()
        started = time.perf_counter()
    free.set()
    assert time.perf_counter() - started < 2 * PATIENCE


def test_a_worker_that_is_to_end_is_not_started() -> None:
    """A run that ends early need not wait for processes that nobody asks any more."""
    worker = Worker(queue.Queue())
    worker.kill()
    worker.start()
    assert worker.process is None


def test_a_process_for_which_nobody_waits_is_not_started_at_once() -> None:
    """Whoever closes the pool before never has one; waiting for an answer starts it."""
    pools = WorkerPool(), WorkerPool()
    workers = [pool.start() for pool in pools]
    for worker in workers:
        worker.submit(Job("os:getpid", 0, SolverLimits()))  # called with three arguments
    pools[0].close()
    event = pools[1].next(60.0)
    assert event is not None and event.worker is workers[1] and workers[1].ready
    pools[1].close()
    assert workers[0].process is None and workers[1].process is not None


@pytest.mark.parametrize("solves", [1, slow(20)])
def test_solves_leave_no_pipes_processes_or_threads(no_collector: None, solves: int) -> None:
    def run() -> None:
        solve(hard_graph(6), DEVICES, method="ip", split="free", workers=2)

    run()
    before = counts()
    for _ in range(solves):
        run()
    assert counts() == before


def test_a_worker_that_has_ended_is_closed_before_the_crew_is(no_collector: None) -> None:
    with closing(WorkerPool()) as pool:
        worker = pool.start()
        worker.submit(Job("os:_exit", 0, SolverLimits()))  # a call of three arguments: the answer is an error
        event = pool.next(60.0)
        assert event is not None and event.worker is worker
        before = counts()
        worker.kill()
        worker.wait(time.perf_counter() + PATIENCE)
        assert counts()[0] <= before[0] - 2


def test_giving_a_large_job_does_not_wait_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process never reads; the pool ends it all the same."""
    popen = subprocess.Popen

    def idle(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return popen([sys.executable, "-c", "import time; time.sleep(600)"], **options)

    monkeypatch.setattr(subprocess, "Popen", idle)

    def submit() -> None:
        with closing(WorkerPool()) as pool:
            pool.start().submit(Job("os:getpid", LARGE, SolverLimits()))

    submitter = threading.Thread(target=submit, daemon=True)
    submitter.start()
    submitter.join(60.0)
    assert not submitter.is_alive()


def test_a_crew_that_is_forgotten_ends_its_workers() -> None:
    pool = WorkerPool()
    worker = pool.start()
    end = time.perf_counter() + 60.0
    while worker.process is None and time.perf_counter() < end:
        time.sleep(0.01)
    assert worker.process is not None
    del pool
    assert worker.process.wait(60.0) == -signal.SIGKILL


def raises(number: int, frame: FrameType | None) -> None:
    raise FromHandlerError


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
@pytest.mark.parametrize("times", [2, slow(10)])
def test_what_a_signal_handler_raises_always_comes_out(times: int) -> None:
    """At any time of a solve: while kernels run, while HiGHS does, and while the parent waits."""
    rng = random.Random(7)
    solve(hard_graph(), DEVICES, method="ip", split="free", time_limit=1.5, workers=2)
    before = counts()[1:]
    handler = signal.signal(signal.SIGALRM, raises)
    try:
        for _ in range(times):
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.01, 1.2))
            with pytest.raises(FromHandlerError):
                solve(hard_graph(), DEVICES, method="ip", split="free", time_limit=30.0, workers=2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    end = time.perf_counter() + 30.0
    while counts()[1:] != before and time.perf_counter() < end:  # where it came while the pool was closed
        time.sleep(0.05)
    assert counts()[1:] == before, [thread.name for thread in threading.enumerate()]


def test_the_process_can_be_named_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started a run goes on without it, and says why."""

    def refused(*words: Any, **options: Any) -> None:
        raise OSError(os.strerror(11))

    monkeypatch.setattr(subprocess, "Popen", refused)
    with closing(WorkerPool()) as pool:
        pool.start()
        event = pool.next(60.0)
    assert event is not None
    assert event.message.native.startswith("its process could not be started")  # type: ignore[union-attr]


def test_a_program_that_is_cut_short_leaves_neither_files_nor_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CBC is a process of its own, with a folder for its program and its solution."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = {one.pid for one in psutil.process_iter()}
    graph = hard_graph()
    solve(graph, DEVICES, method="ip", split="free", backend="cbc", time_limit=1.0)
    left = [one for one in psutil.process_iter() if one.pid not in before and one.name() == "cbc"]
    assert list(tmp_path.iterdir()) == [] and left == []
