"""How plans and bounds of a search change with each field of its effort.

A search runs on workloads without a limit of time, or with one of ``--limit`` seconds where it counts by the
clock, with each field at half and at twice its value. A row says by how much the values of its plans and its
bounds change, as the mean over the workloads and seeds, and the steps and the CPU seconds of all, those of
solvers included.

Exit code: 0; 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from grids import markdown_grid
from outside_bench.cases import task_graph_cases

import partitioner as pt
from partitioner.methods.bounds import cover, cover_pricing
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.exact_makespan import both_ways
from partitioner.methods.exact_makespan import method as exact
from partitioner.methods.first_plan import candidates as first_plans
from partitioner.methods.ip import descent, turns
from partitioner.methods.ip import solve as splits
from partitioner.methods.latency import search as layouts
from partitioner.methods.latency.sequence import beam, effort, method, packing, sequence_table
from partitioner.methods.local_search import rounds as placements
from partitioner.methods.method import Settings
from partitioner.methods.placers import first_fit, refine
from partitioner.methods.solvers import neighbourhood, portfolio
from partitioner.methods.virtual_stages import borders, bound, bound_walk
from partitioner.methods.virtual_stages import search as stages
from partitioner.problem.arrays import Floats
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from tests.random_workloads import random_workload

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
BAD_INPUT = 2
SEEDS = range(3)
COLUMNS = ("field", "value", "values", "bounds", "steps", "CPU s")


@dataclass(frozen=True)
class Result:
    """The value and the bound of a run, 0 where there is none, and its steps."""

    value: float
    bound: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Results:
    """The values and bounds of all runs, their steps and their CPU seconds together."""

    values: Floats
    bounds: Floats
    steps: int
    seconds: float


Run = Callable[[pt.Workload, int, float], Result]


@dataclass(frozen=True)
class Search:
    """A search: the modules that name its effort, and a run of it."""

    modules: tuple[tuple[ModuleType, str], ...]
    run: Run

    @property
    def effort(self) -> Any:
        """The effort as it is."""
        module, name = self.modules[0]
        return getattr(module, name)

    @contextmanager
    def with_effort(self, effort: Any) -> Iterator[None]:
        """Put another effort in its place."""
        usual = self.effort
        try:
            for module, name in self.modules:
                setattr(module, name, effort)
            yield
        finally:
            for module, name in self.modules:
                setattr(module, name, usual)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    search = SEARCHES[options.search]
    try:
        workloads = [pt.load(file) for file in options.workloads]
    except (OSError, pt.PartitionerError) as error:
        print(f"effort_values: {error}", file=sys.stderr)
        return BAD_INPUT
    if options.benchmarks is not None:
        workloads += [case.load() for case in list(task_graph_cases(options.benchmarks))[:: options.every]]
    for seed in range(options.random):
        with suppress(pt.WorkloadError):  # some nodes may run nowhere
            rng = np.random.default_rng([seed, options.nodes])
            workloads.append(pt.Workload(*random_workload(rng, options.nodes, options.devices)))
    _results(workloads, search, options)  # compiles the kernels
    usual = _results(workloads, search, options)
    rows = [["all as they are", "", "", "", f"{usual.steps:,}", f"{usual.seconds:.1f}"]]
    for name, value, varied in _variants(search.effort):
        if options.fields and name not in options.fields:
            continue
        with search.with_effort(varied):
            found = _results(workloads, search, options)
        changes = _change(found.values, usual.values), _change(found.bounds, usual.bounds)
        rows.append([name, str(value), *changes, f"{found.steps:,}", f"{found.seconds:.1f}"])
        print(rows[-1], file=sys.stderr, flush=True)
    print(markdown_grid(COLUMNS, rows))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="effort_values", description=__doc__)
    parser.add_argument("search", choices=sorted(SEARCHES))
    files = sorted(INSTANCES.glob("*_inference.json"))
    parser.add_argument("--workloads", type=Path, nargs="*", default=files, metavar="FILE")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="random graphs, too")
    parser.add_argument("--nodes", type=int, default=30, metavar="N", help="the most nodes of these")
    parser.add_argument("--devices", type=int, default=4, metavar="N", help="and the most devices")
    parser.add_argument("--benchmarks", type=Path, metavar="FOLDER", help="task graphs, too")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="take each N-th of these")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), metavar="N")
    parser.add_argument("--fields", nargs="*", default=[], metavar="NAME", help="only these")
    parser.add_argument(
        "--limit", type=float, default=5.0, metavar="SECONDS", help="of searches by the clock"
    )
    return parser


def _change(found: Floats, usual: Floats) -> str:
    """Return the mean change in per cent, of the runs with a result; "same" if each is the same."""
    if np.array_equal(found, usual):
        return "same"
    known = np.isfinite(usual) & (usual > 0)
    lost = int((known & ~np.isfinite(found)).sum())
    both = known & np.isfinite(found)
    change = f"{100 * float(np.mean(found[both] / usual[both]) - 1):+.3f} %"
    return f"{change}, {lost} lost" if lost else change


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


def _results(workloads: Sequence[pt.Workload], search: Search, options: argparse.Namespace) -> Results:
    """Return what each workload and seed gives."""
    began = os.times()
    found = []
    for workload in workloads:
        for seed in range(options.seeds):
            try:
                found.append(search.run(workload, seed, options.limit))
            except pt.PartitionerError:  # no plan, or not a graph for this objective
                found.append(Result(np.inf))
    ended = os.times()
    seconds = sum(ended[:4]) - sum(began[:4])
    values, bounds = (np.array([getattr(each, name) for each in found]) for name in ("value", "bound"))
    return Results(values, bounds, sum(each.steps for each in found), seconds)


def _problem(workload: pt.Workload, goal: Goal) -> Any:
    return contract(workload.graph, workload.devices, goal)


def _of_plan(plan: pt.Plan, count: str) -> Result:
    return Result(plan.value, plan.bound, int(plan.statistics.get(count, 0)))


def _sequence(workload: pt.Workload, seed: int, _: float) -> Result:
    settings = Settings(orders=4, seed=seed, step_limit=3_000_000)
    search = method.SequenceSearch(_problem(workload, LATENCY), settings)
    search.run()
    return Result(search.value, steps=search.steps)


def _layouts(workload: pt.Workload, seed: int, _: float) -> Result:
    search = layouts.LatencySearch(_problem(workload, LATENCY), seed)
    search.run(lambda: True, 20_000)
    return Result(search.value, steps=search.moves)


def _placements(workload: pt.Workload, seed: int, _: float) -> Result:
    layout = placements.PartLayout(_problem(workload, Goal(split="convex")))
    search = placements.LocalSearch(layout, seed)
    search.run(lambda: True, 1_000_000)
    return Result(search.value, steps=search.shifts)


def _stages(workload: pt.Workload, seed: int, _: float) -> Result:
    given: dict[str, Any] = {
        "schedule": "interleaved_1f1b",
        "microbatches": 8,
        "virtual_stages": 4,
        "seed": seed,
    }
    devices = pt.Devices.accelerated(4)
    return _of_plan(pt.solve(workload.graph, devices, "throughput", split="chain", **given), "plans")


def _paths(workload: pt.Workload, seed: int, limit: float) -> Result:
    given: dict[str, Any] = {"schedule": "zbv", "microbatches": 8, "seed": seed, "time_limit": limit}
    return _of_plan(pt.solve(workload.graph, pt.Devices.accelerated(4), **given), "moves")


def _refinement(workload: pt.Workload, seed: int, _: float) -> Result:
    plan = pt.solve(
        workload.graph, workload.devices, "makespan", method="portfolio", seed=seed, deterministic=True
    )
    return _of_plan(plan, "moves")


def _exact(workload: pt.Workload, seed: int, _: float) -> Result:
    plan = pt.solve(
        workload.graph, workload.devices, "makespan", method="exact", seed=seed, deterministic=True
    )
    return _of_plan(plan, "steps")


def _packing(workload: pt.Workload, seed: int, _: float) -> Result:
    problem = _problem(workload, Goal(Measure.LAST_OPERATOR, "free", transfers=pt.Transfers()))
    home, impossible = first_fit.packed(problem.tasks, Settings(seed=seed))
    return Result(1.0 if home is not None else 2.0 if impossible else 3.0)


def _first(workload: pt.Workload, seed: int, _: float) -> Result:
    found = list(first_plans.candidates(_problem(workload, Goal())))
    return Result(min(each.value for each in found), steps=len(found))


STEPS = 100


def _covering(workload: pt.Workload, seed: int, _: float) -> Result:
    """Raise the bound of free splits to the value of a short local search, in at most `STEPS` steps."""
    problem = _problem(workload, Goal(split="free"))
    search = placements.LocalSearch(placements.PartLayout(problem), seed)
    search.run(lambda: True, 300_000)
    covering, left = cover.Covering(problem, relax(problem)), STEPS

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    covering.rise(search.value, 0.0, stop, lambda _: None)
    return Result(0.0, covering.bound, STEPS - max(left, 0))


def _turns(workload: pt.Workload, seed: int, limit: float) -> Result:
    """Solve a free split without the clock but for a limit that is far."""
    given: dict[str, Any] = {"split": "free", "seed": seed, "deterministic": True}
    return _of_plan(pt.solve(workload.graph, workload.devices, time_limit=limit, **given), "nodes")


def _clocked(workload: pt.Workload, seed: int, limit: float) -> Result:
    """Solve a free split by the clock."""
    return _of_plan(
        pt.solve(workload.graph, workload.devices, split="free", seed=seed, time_limit=limit), "nodes"
    )


LATENCY = Goal(Measure.ONE_SAMPLE, "convex")
OWN = "EFFORT"
SEARCHES = {
    "borders": Search(((borders, OWN),), _paths),
    "covering": Search(((cover, OWN),), _covering),
    "descent": Search(((descent, OWN), (splits, "DESCENT"), (turns, "DESCENT")), _clocked),
    "exact": Search(((exact, OWN),), _exact),
    "first": Search(((first_plans, OWN),), _first),
    "layouts": Search(((layouts, OWN),), _layouts),
    "neighbourhoods": Search(((neighbourhood, OWN),), _turns),
    "packing": Search(((first_fit, OWN),), _packing),
    "walk": Search(((bound_walk, OWN), (bound, "WALK")), _paths),
    "paths": Search(((bound, OWN),), _paths),
    "placements": Search(((placements, OWN),), _placements),
    "pricing": Search(((cover_pricing, OWN),), _covering),
    "refinement": Search(((refine, OWN),), _refinement),
    "schedules": Search(((both_ways, OWN),), _exact),
    "sequences": Search(
        tuple((each, OWN) for each in (effort, method, packing, sequence_table, beam)), _sequence
    ),
    "solvers": Search(((portfolio, OWN), (turns, "PORTFOLIO")), _clocked),
    "splits": Search(((splits, OWN),), _clocked),
    "stages": Search(((stages, OWN),), _stages),
    "turns": Search(((turns, OWN),), _turns),
}


if __name__ == "__main__":
    sys.exit(main())
