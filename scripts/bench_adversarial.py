"""Solve the instances on which `scripts/trials/adversarial.py` found a method weakest: what is lost?

Each is a workload in a folder beside `questions.json`, which has the question, the value of the best plan
known (by an exact method or all plans that the evaluator accepts) and what was learnt. Exit code: 0; 1 if a
value is below the best known, or a bound above it.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from grids import markdown_grid, text_grid

import partitioner as pt

FOLDER = Path(__file__).parent / "benchmarks" / "adversarial"
HEADS = ("instance", "nodes", "devices", "method", "value", "best known", "above", "bound", "below", "learnt")
ROOM = 1e-6


@dataclass(frozen=True)
class Answer:
    """What was found for a question; infinity without a plan."""

    name: str
    size: tuple[int, int]
    method: str
    value: float
    bound: float
    best: float
    learnt: str

    @property
    def sound(self) -> bool:
        """Whether value and bound agree with the best plan known."""
        return self.value >= self.best * (1 - ROOM) and self.bound <= self.best * (1 + ROOM)

    def cells(self) -> list[str]:
        """The row as texts."""
        above = "no plan" if math.isinf(self.value) else f"{100 * (self.value / self.best - 1):.1f} %"
        below = f"{100 * (1 - self.bound / self.best):.1f} %"
        figures = f"{self.value:.5g}", f"{self.best:.5g}", above, f"{self.bound:.5g}", below
        return [self.name, *map(str, self.size), self.method, *figures, self.learnt]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", help="a pattern of the names (all)")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(arguments)
    found = list(answers(options.folder, options.only))
    grid = markdown_grid if options.markdown else text_grid
    print(grid(HEADS, [answer.cells() for answer in found]))
    return int(not all(answer.sound for answer in found))


def answers(folder: Path, pattern: str = "") -> Iterator[Answer]:
    """Solve every question of a folder."""
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    for name, question in questions.items():
        if re.search(pattern, name):
            yield answer(folder, name, question)


def answer(folder: Path, name: str, question: dict[str, Any]) -> Answer:
    """Solve one question."""
    workload = pt.load(folder / f"{name}.json")
    options = dict(question["options"])
    if "transfers" in options:
        options["transfers"] = pt.Transfers(**options["transfers"])
    size = len(workload.graph), len(workload.devices.names)
    value, bound, method = math.inf, 0.0, options.get("method", "auto")
    try:
        plan = pt.solve(workload.graph, workload.devices, question["objective"], **options)
        value, bound, method = plan.value, plan.bound_on_any_devices, plan.method
    except pt.NoPlanFound:
        pass
    return Answer(name, size, method, value, bound, question["best"], question.get("learnt", ""))


if __name__ == "__main__":
    sys.exit(main())
