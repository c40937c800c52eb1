"""How the plans of a heuristic change with each field of its effort.

A search runs on workloads without a limit of time, with each field at half and at twice its value. A row says
by how much the values of its plans change, as the mean over the workloads and seeds, and the steps in all.

Exit code: 0; 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from grids import markdown_grid

import partitioner as pt
from partitioner.methods.first_plan import candidates as first_plans
from partitioner.methods.latency import search as layouts
from partitioner.methods.latency.sequence import beam, effort, method, packing, sequence_table
from partitioner.methods.local_search import rounds as placements
from partitioner.methods.method import Settings
from partitioner.methods.placers import refine
from partitioner.methods.virtual_stages import search as stages
from partitioner.problem.arrays import Floats
from partitioner.problem.contract import Goal, contract
from partitioner.problem.measure import Measure

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
BAD_INPUT = 2
SEEDS = range(3)
Run = Callable[[pt.Workload, int], tuple[float, int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="effort_values", description=__doc__)
    files = sorted(INSTANCES.glob("*_inference.json"))
    parser.add_argument("search", choices=sorted(SEARCHES))
    parser.add_argument("--workloads", type=Path, nargs="+", default=files, metavar="FILE")
    options = parser.parse_args(arguments)
    usual, modules, run = SEARCHES[options.search]
    try:
        workloads = [pt.load(file) for file in options.workloads]
    except (OSError, pt.PartitionerError) as error:
        print(f"effort_values: {error}", file=sys.stderr)
        return BAD_INPUT
    values, steps = _results(workloads, run)
    rows = [["all as they are", "", "", f"{steps:,}"]]
    for name, value, varied in _variants(usual):
        for module in modules:
            module.EFFORT = varied  # type: ignore[attr-defined]
        found, taken = _results(workloads, run)
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


def _results(workloads: Sequence[pt.Workload], run: Run) -> tuple[Floats, int]:
    """Return the value of each workload and seed, and the steps of all."""
    found = [run(workload, seed) for workload in workloads for seed in SEEDS]
    return np.array([value for value, _ in found]), sum(steps for _, steps in found)


def _problem(workload: pt.Workload, goal: Goal) -> Any:
    return contract(workload.graph, workload.devices, goal)


def _sequence(workload: pt.Workload, seed: int) -> tuple[float, int]:
    settings = Settings(orders=4, seed=seed, step_limit=3_000_000)
    search = method.SequenceSearch(_problem(workload, LATENCY), settings)
    search.run()
    return search.value, search.steps


def _layouts(workload: pt.Workload, seed: int) -> tuple[float, int]:
    search = layouts.LatencySearch(_problem(workload, LATENCY), seed)
    search.run(lambda: True, 20_000)
    return search.value, search.moves


def _placements(workload: pt.Workload, seed: int) -> tuple[float, int]:
    layout = placements.PartLayout(_problem(workload, Goal(split="convex")))
    search = placements.LocalSearch(layout, seed)
    search.run(lambda: True, 1_000_000)
    return search.value, search.shifts


def _stages(workload: pt.Workload, seed: int) -> tuple[float, int]:
    plan = pt.solve(
        workload.graph,
        pt.Devices.accelerated(4),
        split="chain",
        schedule="interleaved_1f1b",
        microbatches=8,
        seed=seed,
    )
    return plan.value, int(plan.statistics.get("steps", 0))


def _refinement(workload: pt.Workload, seed: int) -> tuple[float, int]:
    plan = pt.solve(workload.graph, workload.devices, "makespan", method="portfolio", seed=seed)
    return plan.value, int(plan.statistics.get("moves", 0))


def _first(workload: pt.Workload, seed: int) -> tuple[float, int]:
    found = list(first_plans.candidates(_problem(workload, Goal())))
    return min(each.value for each in found), len(found)


LATENCY = Goal(Measure.ONE_SAMPLE, "convex")
SEARCHES: dict[str, tuple[Any, tuple[ModuleType, ...], Run]] = {
    "first": (first_plans.EFFORT, (first_plans,), _first),
    "layouts": (layouts.EFFORT, (layouts,), _layouts),
    "placements": (placements.EFFORT, (placements,), _placements),
    "refinement": (refine.EFFORT, (refine,), _refinement),
    "sequences": (effort.EFFORT, (method, packing, sequence_table, beam), _sequence),
    "stages": (stages.EFFORT, (stages,), _stages),
}


if __name__ == "__main__":
    sys.exit(main())
