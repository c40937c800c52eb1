"""The other end of :mod:`dp_bench.worker`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

WORKER = Path(__file__).with_name("worker.py")


class WorkerFailed(Exception):  # noqa: N818 - an answer, not a defect
    """The worker could not solve its workload."""


class Session:
    """A worker process and its first answer.

    Parameters
    ----------
    method
        ``"dp"`` or ``"dpl"``.
    file
        The workload; without one the worker only knows its tiny graph.
    environment
        Variables to add to those of this process.

    Raises
    ------
    WorkerFailed
        With the worker's reason.
    """

    def __init__(
        self, method: str, file: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        command = [sys.executable, str(WORKER), method, *([] if file is None else [str(file)])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            self.first = self._answer()
        except BaseException:
            self.close()
            raise

    def solve(self) -> dict[str, Any]:
        """Solve the workload once more."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the worker."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        record: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in record:
            raise WorkerFailed(record["error"])
        return record
