"""Measured times of the plans that solve finds, beside those of equal layers and of other tools' splits.

``python scripts/bench_plans.py`` runs the plans of each model as pipelines of two processes of one thread for
inference and under 1F1B, and prints the time per sample of each in ms, and in brackets that of the plan of
solve divided by it: below one the plan of solve is faster. A split that is the same as an earlier one of its
row is not run again. A time with ``?`` was measured beside other programs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from grids import markdown_grid
from truth_bench.options import begin, cases, parser, tries
from truth_bench.runs import ProfiledModel, circumstances, solved
from truth_bench.splits import SPLITS

import partitioner as pt
from partitioner.integrations.torch.verification import MeasuredRun

SOLVED = "solve"


def plans_of(graph: pt.Graph) -> dict[str, Mapping[Any, str]]:
    """Return the plan of solve and those of all other rules."""
    found = {name: rule(graph) for name, rule in SPLITS.items()}
    return {SOLVED: solved(graph), **found}


def measured(case: ProfiledModel, rounds: int, most: int) -> dict[str, MeasuredRun]:
    """Return a run of each plan of a model; equal plans share one."""
    found: dict[str, MeasuredRun] = {}
    known: dict[frozenset[Any], MeasuredRun] = {}
    for name, placement in plans_of(case.graph).items():
        key = frozenset(placement.items())
        if key not in known:
            known[key] = case.run(placement, case.schedules[-1], rounds, most)
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
    options = parser(__doc__).parse_args()
    started, bandwidth = time.monotonic(), begin()
    rows, runs = [], []
    for name, case in cases(options, bandwidth):
        found = measured(case, options.rounds, tries(options))
        rows.append(row(name, found))
        runs += list(found.values())
        print(*rows[-1], file=sys.stderr, flush=True)
    print(f"{circumstances(runs)}\n")
    print(markdown_grid(["model", "schedule", SOLVED, *SPLITS], rows))
    print(f"\n{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main()
