"""The programs that a backend runs as processes of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_RUNNING: list[subprocess.Popen[str]] = []


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program whose standard output is read; it has ended when the ``with`` block has."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        _RUNNING.append(process)
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            _RUNNING.remove(process)


def end_all() -> None:
    """End all programs that run, and take their exit codes, so that none stays in the table of processes."""
    for process in tuple(_RUNNING):
        process.kill()
        process.wait()
