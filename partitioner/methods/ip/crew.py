"""The worker processes of a run: started when needed, killed at once."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import IO, Any

from partitioner.methods.ip.backends.backend import Answer
from partitioner.methods.ip.messages import Job, News


@dataclass(frozen=True, eq=False)
class Event:
    """What came from a worker: news, an answer, or the answer ``"failed"`` if its process ended."""

    worker: Worker
    message: News | Answer


class Worker:
    """One process that runs one job at a time; not reached by the terminal's Ctrl-C."""

    def __init__(self, events: queue.Queue[Event]) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
        self.process = subprocess.Popen(
            [sys.executable, "-m", "partitioner.methods.ip.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self.alive = True
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def give(self, job: Job) -> None:
        """Queue a job; a worker that has ended says so by an event."""
        try:
            pickle.dump(job, self._pipe(self.process.stdin))
            self._pipe(self.process.stdin).flush()
        except OSError:
            self.alive = False

    def kill(self) -> None:
        """End the process and all that it started."""
        self.alive = False
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        except ProcessLookupError:
            pass
        self.process.wait()

    def _listen(self, events: queue.Queue[Event]) -> None:
        try:
            while True:
                events.put(Event(self, pickle.load(self._pipe(self.process.stdout))))
        except Exception:  # the end of the pipe, or half a message
            self.alive = False
            code = self.process.wait()
            events.put(Event(self, Answer("failed", native=f"its process ended with code {code}")))

    @staticmethod
    def _pipe(pipe: IO[Any] | None) -> IO[bytes]:
        if pipe is None:
            raise OSError("closed")
        return pipe


class Crew:
    """Workers and the queue of what they tell; all are killed when it is closed."""

    def __init__(self) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.workers: list[Worker] = []

    def hire(self) -> Worker:
        """A new worker."""
        self.workers.append(Worker(self.events))
        return self.workers[-1]

    def next(self, seconds: float) -> Event | None:
        """The next event; None if there is none within `seconds`."""
        try:
            return self.events.get(timeout=seconds) if seconds > 0 else self.events.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            worker.kill()
