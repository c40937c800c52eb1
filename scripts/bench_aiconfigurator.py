"""Ask NVIDIA's aiconfigurator and `plan_serving` the same questions on equal workers, and compare.

Its package needs a Python of its own: `python -m venv DIR; DIR/bin/pip install aiconfigurator==0.12.0`. Rows
are about its best layout with prefill and decode on the same workers: its tokens per second and ours with as
many sequences, its milliseconds of a prompt alone and of a step of the batch alone and ours, and at which
place of our table the layout stands. Exit code: 0; 1 if a median is above 10 % or a layout is not among the
first three; 2 without answers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from aiconfigurator_bench.answers import Compared
from aiconfigurator_bench.questions import QUESTIONS
from grids import markdown_grid, text_grid

THEIRS = Path(__file__).with_name("aiconfigurator_bench") / "theirs.py"
COLUMNS = [
    "question", "its best", "tokens/s", "ours", "off", "prompt, ms", "ours", "off", "step, ms", "ours", "off",
    "place",
]  # fmt: skip
MOST, FIRST = 0.1, 3
GOOD, FAILED, BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the Python that has aiconfigurator")
    parser.add_argument("--answers", type=Path, help="keep its answers in this file, or read them there")
    parser.add_argument("--markdown", action="store_true", help="write markdown (default: aligned columns)")
    options = parser.parse_args(arguments)
    if options.answers is not None and options.answers.is_file():
        text = options.answers.read_text(encoding="utf-8")
    elif options.python is None:
        print("bench_aiconfigurator: give --python or a file of --answers", file=sys.stderr)
        return BAD_INPUT
    else:
        text = asked(options.python)
        if options.answers is not None:
            options.answers.write_text(text, encoding="utf-8")
    found = [
        Compared.of(question, answer)
        for question, answer in zip(QUESTIONS, json.loads(text), strict=True)
        if answer["layouts"]
    ]
    print((markdown_grid if options.markdown else text_grid)(COLUMNS, [row.cells for row in found]))
    medians = {name: statistics.median(row.off[name] for row in found) for name in found[0].off}
    first = sum(row.place <= FIRST for row in found)
    told = ", ".join(f"{name} {value:.1%}" for name, value in medians.items())
    print(f"median difference of {len(found)}: {told}; its best among our first {FIRST}: {first}")
    return GOOD if max(medians.values()) <= MOST and first == len(found) else FAILED


def asked(python: str) -> str:
    """Return the answers of the package that a Python has, as JSON."""
    questions = json.dumps([asdict(question) for question in QUESTIONS])
    run = subprocess.run([python, str(THEIRS)], input=questions, capture_output=True, text=True, check=True)
    return run.stdout


if __name__ == "__main__":
    sys.exit(main())
