"""A shell that asks for completions gets commands, options and the values of options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "partitioner"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("partitioner rep", {"report"}),
        ("partitioner solve workload.json --spl", {"--split"}),
        ("partitioner solve workload.json --split ", {"chain", "convex", "free"}),
    ],
)
def test_completions(line: str, expected: set[str], tmp_path: Path) -> None:
    pytest.importorskip("argcomplete", reason="completion needs argcomplete")
    output = tmp_path / "completions"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(output), "COMP_TYPE": "9"}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    subprocess.run([sys.executable, "-m", PROGRAM], env=os.environ | asked, capture_output=True, check=True)
    assert {word.strip() for word in output.read_text(encoding="utf-8").split("\n")} == expected


def test_without_argcomplete() -> None:
    program = "import sys; sys.modules['argcomplete'] = None; from partitioner.cli import run; run()"
    command = [sys.executable, "-c", program, "--version"]
    done = subprocess.run(command, env=os.environ | {"_ARGCOMPLETE": "1"}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1][0].isdigit()
