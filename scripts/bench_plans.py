"""Measured times of the plans that solve finds, beside those of equal layers and of other tools' splits.

``python scripts/bench_plans.py`` runs the plans of each model as pipelines of two processes of one thread for
inference and under 1F1B, and prints the time per sample of each in ms, and in brackets that of the plan of
solve divided by it: below one the plan of solve is faster. A split that is the same as an earlier one of its
row is not run again. A time with ``?`` was measured beside other programs.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any

from grids import markdown_grid
from truth_bench.models import MODELS
from truth_bench.runs import (
    MOST_TRIES,
    ProfiledModel,
    bandwidth_here,
    circumstances,
    prepare,
    profiled,
    solved,
)
from truth_bench.splits import SPLITS

import partitioner as pt
from partitioner.integrations.torch.verification import MeasuredRun

SOLVED = "solve"


def plans_of(graph: pt.Graph) -> dict[str, Mapping[Any, str]]:
    """Return the plan of solve and those of all other rules."""
    found = {name: rule(graph) for name, rule in SPLITS.items()}
    return {SOLVED: solved(graph), **found}


def measured(case: ProfiledModel, rounds: int, tries: int) -> dict[str, MeasuredRun]:
    """Return a run of each plan of a model; equal plans share one."""
    found: dict[str, MeasuredRun] = {}
    known: dict[frozenset[Any], MeasuredRun] = {}
    for name, placement in plans_of(case.graph).items():
        key = frozenset(placement.items())
        if key not in known:
            known[key] = case.run(placement, case.schedules[-1], rounds, tries)
        found[name] = known[key]
    return found


def row(name: str, runs: Mapping[str, MeasuredRun]) -> list[str]:
    """Return a line of the table."""
    solved = runs[SOLVED]
    cells = [_cell(run, solved) for plan, run in runs.items() if plan != SOLVED]
    return [name, solved.schedule, f"{_time(solved)}", *cells]


def _cell(run: MeasuredRun, solved: MeasuredRun) -> str:
    if run is solved:
        return "the same plan"
    return f"{_time(run)} ({solved.time_per_sample / run.time_per_sample:.2f})"


def _time(run: MeasuredRun) -> str:
    return f"{run.time_per_sample:.1f}{'?' if run.doubt else ''}"


def main() -> None:
    """Run the plans and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a profile")
    parser.add_argument("--any-load", action="store_true", help="run nothing again beside other programs")
    parser.add_argument("--cache", help="a folder for profiles")
    options = parser.parse_args()
    prepare()
    warnings.filterwarnings("ignore")
    begin, bandwidth = time.monotonic(), bandwidth_here()
    rows, runs = [], []
    for name in options.models:
        for training in (False, True):
            case = profiled(name, training, bandwidth, options.seconds, options.cache)
            found = measured(case, options.rounds, 1 if options.any_load else MOST_TRIES)
            rows.append(row(name, found))
            runs += list(found.values())
            print(*rows[-1], file=sys.stderr, flush=True)
    print(f"{circumstances(runs)}\n")
    print(markdown_grid(["model", "schedule", SOLVED, *SPLITS], rows))
    print(f"\n{time.monotonic() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
