"""The worker processes of a run, which are started when needed and can be killed at any time.

They are needed once somebody waits for their answers, or a moment after they have been asked: most small
problems are solved before, and to start a process takes longer than that.

Only :meth:`WorkerPool.next` and :meth:`WorkerPool.close` make the caller wait: threads, in which no signal
handler of the user's can raise, start the processes, send them jobs and end them.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import IO

from partitioner.methods.solvers.backends.backend import READY, Answer, Job, News

HEAD_START = 0.2  # seconds before a process is started for whose answer nobody waits
GRACE = 0.3  # seconds for a worker to end by itself, with the programs that it runs and their files
PATIENCE = 2.0  # seconds to wait for all threads to notice that their processes have ended


@dataclass(frozen=True, eq=False)
class Event:
    """A message of a worker: news, an answer, or the answer ``"failed"`` if its process has ended."""

    worker: Worker
    message: News | Answer


class Worker:
    """A process that runs one job at a time and does not receive the terminal's Ctrl-C.

    Attributes
    ----------
    process
        None until it is started.
    alive
        False once the process has ended, or is to end.
    ready
        Whether the process reads jobs by now; before it runs no programs, and needs no time to end them.
    """

    def __init__(self, events: queue.Queue[Event]) -> None:
        self.events = events
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.process: subprocess.Popen[bytes] | None = None
        self.alive = True
        self.ready = False
        self.threads: list[threading.Thread] = []

    def submit(self, job: Job) -> None:
        """Queue a job; if the process has ended, an event says so."""
        self.jobs.put(job)

    def start(self) -> None:
        """Start the process and the threads that write to it and read from it, unless it is killed by now."""
        if not self.alive:
            return
        try:
            folder = tempfile.mkdtemp(prefix="partitioner-")
            process = _started(folder)
        except OSError as error:  # too many processes or open files
            self._fail(f"its process could not be started: {error}")
            return
        self.process = process
        weakref.finalize(process, shutil.rmtree, folder, ignore_errors=True)
        for work in (self._write, self._listen):
            self._run(work, process)
        if not self.alive:
            self._run(self._end, process)

    def kill(self) -> None:
        """End the process and all processes that it started: its input ends, and soon it is killed."""
        self.alive = False
        self.jobs.put(None)
        if self.process is not None and self.process.returncode is None:
            self._run(self._end, self.process)

    def wait(self, end: float) -> None:
        """Wait, until ``time.perf_counter`` reads `end`, for the process to end and its pipes to close."""
        for thread in self.threads:
            thread.join(max(0.0, end - time.perf_counter()))

    def _run(self, work: Callable[[subprocess.Popen[bytes]], None], process: subprocess.Popen[bytes]) -> None:
        self.threads.append(threading.Thread(target=work, args=(process,), daemon=True))
        self.threads[-1].start()

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        try:
            while (job := self.jobs.get()) is not None:
                pickle.dump(job, process.stdin)
                process.stdin.flush()
        except OSError:
            pass  # the process has ended, which the other thread notices
        finally:
            _close(process.stdin)

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        try:
            self.ready = pickle.load(process.stdout) == READY
            while True:
                self.events.put(Event(self, pickle.load(process.stdout)))
        except Exception:  # the end of the pipe, or half a message
            self.kill()
            self._fail(f"its process ended with code {process.wait()}")
        finally:
            _close(process.stdout)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait a moment until a process whose input has ended ends as well; else kill it with its group."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE if self.ready else 0.0)
            return
        _kill(process)

    def _fail(self, why: str) -> None:
        self.alive = False
        self.events.put(Event(self, Answer("failed", native=why)))


class Call(Enum):
    """What the thread of a pool is told: to start the workers that it holds back, or to end all."""

    START = auto()
    END = auto()


class WorkerPool:
    """Workers and the queue of their events; all are killed when the pool is closed or garbage-collected."""

    def __init__(self) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.queued: queue.SimpleQueue[Worker | Call] = queue.SimpleQueue()
        self.keeper: threading.Thread | None = None
        self.held = False
        weakref.finalize(self, self.queued.put, Call.END)

    def start(self) -> Worker:
        """Return a new worker; a thread starts its process, at once if somebody waits for it."""
        if self.keeper is None:
            self.keeper = threading.Thread(target=_keep, args=(self.queued,), daemon=True)
            self.keeper.start()
        worker = Worker(self.events)
        self.queued.put(worker)
        self.held = True
        return worker

    def next(self, seconds: float) -> Event | None:
        """Return the next event; None if there is none within `seconds`."""
        if self.held and seconds > 0:
            self.held = False
            self.queued.put(Call.START)
        try:
            return self.events.get(timeout=seconds) if seconds > 0 else self.events.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Kill all workers, and wait until they have ended."""
        self.queued.put(Call.END)
        if self.keeper is not None and self.keeper.ident is not None:
            self.keeper.join()


def _keep(queued: queue.SimpleQueue[Worker | Call]) -> None:
    """Start the workers when they are called for, or after a moment, and end all of them at the end."""
    workers: list[Worker] = []
    held: list[Worker] = []
    while (call := _called(queued, HEAD_START if held else None)) is not Call.END:
        if isinstance(call, Worker):
            held.append(call)
            continue
        for worker in held:
            worker.start()
        workers, held = workers + held, []
    for worker in workers:
        worker.kill()
    end = time.perf_counter() + PATIENCE
    for worker in workers:
        worker.wait(end)


def _called(queued: queue.SimpleQueue[Worker | Call], seconds: float | None) -> Worker | Call:
    try:
        return queued.get(timeout=seconds)
    except queue.Empty:
        return Call.START


def _started(folder: str) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
    return subprocess.Popen(
        [sys.executable, "-m", "partitioner.methods.solvers.worker", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": folder},
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _close(pipe: IO[bytes]) -> None:
    with suppress(OSError):  # what was not written yet has no reader any more
        pipe.close()
