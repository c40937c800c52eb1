"""A compiled copy of the paper's dynamic program, run on a workload file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAUNCHER = Path(__file__).with_name("launcher.py")
KILLED = -9
SHOWN = 60


@dataclass(frozen=True)
class Run:
    """One run; `failure` says why there is no value."""

    seconds: float | None = None
    peak_bytes: int | None = None
    value: float | None = None
    failure: str = ""


def run_reference(program: Path, file: Path, timeout: float) -> Run:
    """Run the program with the file on standard input.

    Parameters
    ----------
    program
        Prints a JSON object with `maxLoad` on standard output.
    file
        The workload.
    timeout
        Seconds after which it is killed.
    """
    command = [sys.executable, "-I", "-S", str(LAUNCHER), str(timeout), str(file), str(program.resolve())]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
        output.seek(0)
        text = output.read()
    if done.returncode:
        return Run(failure=_last_line(done.stderr))
    return _judged(json.loads(done.stderr), text, timeout)


def _judged(record: dict[str, Any], output: str, timeout: float) -> Run:
    seconds, peak, code = record["seconds"], record["peak_bytes"], record["exit_code"]
    if code == KILLED and seconds >= timeout:
        return Run(seconds, peak, failure=f"stopped after {timeout:g} s")
    if code:
        return Run(seconds, peak, failure=f"exit code {code}: {_last_line(output)}".removesuffix(": "))
    try:
        return Run(seconds, peak, float(json.loads(output)["maxLoad"]))
    except (ValueError, KeyError, TypeError):
        return Run(seconds, peak, failure=f"no JSON object with maxLoad: {_last_line(output)}")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    return lines[-1][:SHOWN]
