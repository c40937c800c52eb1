"""A process that solves with the package of one checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from checkouts.jobs import Job, Triple
from checkouts.runs import Run

WORKER = Path(__file__).with_name("worker.py")


class CheckoutError(Exception):
    """A folder whose package cannot be used; the message names the folder."""


class Checkout:
    """A fresh process that imports the package of a folder.

    It runs on the folder's own interpreter, ``.venv/bin/python``, or else on the current one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        own = self.folder / ".venv" / "bin" / "python"
        self._process = subprocess.Popen(
            [own if own.exists() else sys.executable, "-P", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
        )

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def methods(self) -> dict[Triple, set[str]]:
        """Return for every method, with every objective and split, the features that it takes account of.

        Raises
        ------
        CheckoutError
            If the folder has no package that can be imported, or another one was imported in its place.
        """
        found = self._answer("about")
        if Path(found["package"]).parent != self.folder:
            raise CheckoutError(f"{self.folder}: the package imported is that of {found['package']}")
        return {(name, objective, split): set(rest) for name, objective, split, rest in found["methods"]}

    def run(self, job: Job, seed: int, patience: float) -> Run:
        """Return what becomes of a job.

        Raises
        ------
        CheckoutError
            If the process ends without an answer.
        """
        return Run(**self._answer(asdict(job) | {"seed": seed, "patience": patience}))

    def _answer(self, request: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise CheckoutError(f"{self.folder}: its process ended at {request}; the reason is above")
        return json.loads(answer)
