"""Calls with a time limit in a process of its own.

Called as ``limit_worker.py MOST``: reads seeds from standard input, makes the call of each, and prints a JSON
object for each; an empty line means: load and compile everything. :class:`Worker` is the other side.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

from trials.limit_calls import answered, call_of, warm_up

PATIENCE = 300.0  # seconds after which a call counts as one that never ends


class Worker:
    """A process that makes calls; cold: with an empty cache of compiled code."""

    def __init__(self, most: int, cold: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory() if cold else None
        place = {"NUMBA_CACHE_DIR": self._folder.name} if self._folder else {}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(most)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | place,
            text=True,
        )

    def ask(self, seed: int | None) -> dict[str, Any]:
        """The record of a call (:func:`trials.limit_calls.answered`); None: load and compile everything."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print("" if seed is None else seed, file=self._process.stdin, flush=True)
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        self._process.kill()
        how = "the process ended" if ready else f"no answer in {PATIENCE:g} s"
        return {"outcome": "lost", "wall": PATIENCE, "processor": 0.0, "compiling": 0.0, "untrue": how}

    @property
    def alive(self) -> bool:
        """Whether it can be asked again."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        if self._folder:
            self._folder.cleanup()


def serve(most: int) -> None:
    """Answer the seeds on standard input."""
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(answered(call_of(int(line), most))), flush=True)
        else:
            warm_up()
            print(json.dumps({"outcome": "warm"}), flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
