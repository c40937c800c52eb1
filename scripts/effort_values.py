"""How the plans of a heuristic change with each field of its effort.

A search runs on workloads without a limit of time, with each field at half and at twice its value. A row says
by how much the values of its plans change, as the mean over the workloads and seeds, and the steps in all.

Exit code: 0; 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from grids import markdown_grid

import partitioner as pt
from partitioner.methods.latency import search as layouts
from partitioner.methods.latency.sequence import beam, effort, method, packing, sequence_table
from partitioner.methods.local_search import rounds as placements
from partitioner.methods.method import Settings
from partitioner.problem.contract import Goal, contract
from partitioner.problem.measure import Measure

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
BAD_INPUT = 2
SEEDS = range(3)
Run = Callable[[Any, int], tuple[float, int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="effort_values", description=__doc__)
    files = sorted(INSTANCES.glob("*_inference.json"))
    parser.add_argument("search", choices=sorted(SEARCHES))
    parser.add_argument("--workloads", type=Path, nargs="+", default=files, metavar="FILE")
    options = parser.parse_args(arguments)
    goal, usual, modules, run = SEARCHES[options.search]
    try:
        workloads = [pt.load(file) for file in options.workloads]
        problems = [contract(each.graph, each.devices, goal) for each in workloads]
    except (OSError, pt.PartitionerError) as error:
        print(f"effort_values: {error}", file=sys.stderr)
        return BAD_INPUT
    values, steps = _results(problems, run)
    rows = [["all as they are", "", "", f"{steps:,}"]]
    for name, value, varied in _variants(usual):
        for module in modules:
            module.EFFORT = varied  # type: ignore[attr-defined]
        with suppress(pt.PartitionerError):
            found, taken = _results(problems, run)
            change = 100 * float(np.mean(found / values) - 1)
            rows.append([name, str(value), f"{change:+.2f} %", f"{taken:,}"])
    for module in modules:
        module.EFFORT = usual  # type: ignore[attr-defined]
    print(markdown_grid(["field", "value", "change of values", "steps"], rows))
    return 0


def _variants(usual: Any) -> Iterator[tuple[str, object, Any]]:
    for field in fields(usual):
        value = getattr(usual, field.name)
        for factor in (0.5, 2):
            varied: object = None
            if isinstance(value, int | float):
                varied = type(value)(value * factor)
            elif isinstance(value, tuple):
                varied = tuple(type(each)(each * factor) for each in value)
            if varied is not None:
                yield field.name, varied, replace(usual, **{field.name: varied})


def _results(problems: Sequence[Any], run: Run) -> tuple[np.ndarray[Any, Any], int]:
    """Return the value of each problem and seed, and the steps of all."""
    found = [run(problem, seed) for problem in problems for seed in SEEDS]
    return np.array([value for value, _ in found]), sum(steps for _, steps in found)


def _sequence(problem: Any, seed: int) -> tuple[float, int]:
    search = method.SequenceSearch(problem, Settings(orders=4, seed=seed, step_limit=3_000_000))
    search.run()
    return search.value, search.steps


def _layouts(problem: Any, seed: int) -> tuple[float, int]:
    search = layouts.LatencySearch(problem, seed)
    search.run(lambda: True, 20_000)
    return search.value, search.moves


def _placements(problem: Any, seed: int) -> tuple[float, int]:
    search = placements.LocalSearch(placements.PartLayout(problem), seed)
    search.run(lambda: True, 1_000_000)
    return search.value, search.shifts


LATENCY, CONVEX = Goal(Measure.ONE_SAMPLE, "convex"), Goal(split="convex")
SEARCHES: dict[str, tuple[Goal, Any, tuple[ModuleType, ...], Run]] = {
    "sequences": (LATENCY, effort.EFFORT, (method, packing, sequence_table, beam), _sequence),
    "layouts": (LATENCY, layouts.EFFORT, (layouts,), _layouts),
    "placements": (CONVEX, placements.EFFORT, (placements,), _placements),
}


if __name__ == "__main__":
    sys.exit(main())
