"""The worker process, in which native solvers run because Ctrl-C and time limits do not stop them in time.

``python -m partitioner.methods.solvers.worker FOLDER`` reads pickled jobs from standard input and writes
pickled messages to standard output, the first one that it is ready, until its input ends or it is killed. At
the end of its input it removes the folder, which is for its temporary files.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import sys
import threading
from typing import IO, Any

from partitioner.base.registry import imported
from partitioner.methods.solvers.backends.backend import READY, Answer, Job, News, Solver, end_all, guarded


def serve(jobs: IO[bytes], messages: IO[bytes]) -> None:
    """Run one job after the other; end at once, even during a solve, when the parent process has ended."""
    waiting: queue.Queue[Job] = queue.Queue()
    threading.Thread(target=_read, args=(jobs, waiting), daemon=True).start()
    while True:
        _send(messages, answer(waiting.get(), messages))


def answer(job: Job, messages: IO[bytes]) -> Answer:
    """Run a job and return its answer; an error becomes an answer ``"failed"`` with the error's message."""

    def solved() -> Answer:
        solver: Solver = imported(job.solver)
        return solver(job.payload, job.limits, lambda values, bound: _send(messages, News(values, bound)))

    return guarded(solved)


def _read(jobs: IO[bytes], waiting: queue.Queue[Job]) -> None:
    try:
        while True:
            waiting.put(pickle.load(jobs))
    except (EOFError, pickle.UnpicklingError, OSError):
        leave()


def leave() -> None:
    """End this process and the programs that it started, and remove its folder of temporary files."""
    end_all()
    if len(sys.argv) > 1:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _send(messages: IO[bytes], message: Any) -> None:
    pickle.dump(message, messages)
    messages.flush()


def main() -> None:
    """Serve jobs; standard output carries the messages, and whatever solvers print is discarded."""
    messages = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    _send(messages, READY)
    serve(sys.stdin.buffer, messages)


if __name__ == "__main__":
    main()
