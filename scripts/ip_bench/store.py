"""Finished runs in a file, one JSON object a line, so that a benchmark can be taken up again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ip_bench.runs import Limits, Run, Task
from partitioner.base.files import write_text


def read_runs(path: Path) -> dict[Task, Run]:
    """The runs of a file by task, the last one of each; none without a file.

    Raises
    ------
    ValueError
        Naming the line that is no run.
    """
    runs = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        try:
            run = _run(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}: line {number} is no run of bench_ip") from error
        runs[run.task] = run
    return runs


def append_run(path: Path, run: Run) -> None:
    """Add a run at the end of a file, in a line of its own.

    Raises
    ------
    PartitionerError
        If the file cannot be written; it stays as it was.
    """
    write_text(path, f"{_text(path)}{as_line(run)}\n")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def as_line(run: Run) -> str:
    """A run as one line of JSON."""
    return json.dumps(asdict(run))


def _run(record: dict[str, Any]) -> Run:
    task = record["task"]
    return Run(**record | {"task": Task(**task | {"limits": Limits(**task["limits"])})})
