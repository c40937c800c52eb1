"""A process of its own that runs trials, so that one that never ends or takes the process down is one trial.

Called as ``worker.py MODULE:FUNCTION``: reads a JSON list of arguments a line and prints what the function
returns, as JSON. :class:`Worker` is the other side.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])


class Lost(Exception):  # noqa: N818 - what happened, not an error of the program
    """The process ended, or gave no answer in time."""


class Worker:
    """The process that runs a function.

    Parameters
    ----------
    function
        Module and name.
    patience
        Seconds to wait for an answer.
    cold
        Whether it starts with an empty cache of compiled code.
    """

    def __init__(self, function: str, patience: float = 300.0, cold: bool = False) -> None:
        self.function, self.patience = function, patience
        self._folder = tempfile.TemporaryDirectory() if cold else None
        self._process: subprocess.Popen[str] | None = None

    def ask(self, *arguments: object) -> Any:
        """What the function returns; :class:`Lost` is raised if it does not."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        print(json.dumps(arguments), file=process.stdin, flush=True)
        ready, _, _ = select.select([process.stdout], [], [], self.patience)
        line = process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.end()
        raise Lost("the process ended" if ready else f"no answer in {self.patience:g} s")

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            place = {"NUMBA_CACHE_DIR": self._folder.name} if self._folder else {}
            self._process = subprocess.Popen(
                [sys.executable, __file__, self.function],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | place,
                text=True,
            )
        return self._process

    @property
    def fresh(self) -> bool:
        """Whether there is no process yet, or none any more."""
        return self._process is None

    def end(self) -> None:
        """End the process; the next question starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """End the process for good."""
        self.end()
        if self._folder:
            self._folder.cleanup()


def serve(name: str) -> None:
    """Answer the lines of standard input; what trials print goes to standard error."""
    module, function = name.split(":")
    answer = getattr(import_module(module), function)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            print(json.dumps(answer(*json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
