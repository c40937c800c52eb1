"""Measured times of the plans that solve finds, beside those of equal layers and of other tools' splits.

``python scripts/bench_plans.py`` runs the plans of each model as pipelines of two processes of one thread for
inference and under 1F1B, and prints the time per sample of each in ms, and in brackets that of the plan of
solve divided by it: below one the plan of solve is faster. Plans are run in turn, so that what slows the
machine for a while slows all of them; medians of the turns count, of times and of ratios. A split that is the
same as an earlier one of its row is not run again. A time with ``?`` was measured beside other programs.
"""

from __future__ import annotations

import statistics
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


def measured(case: ProfiledModel, rounds: int, most: int, turns: int) -> dict[str, list[MeasuredRun]]:
    """Return the runs of each plan of a model, one a turn; equal plans share them."""
    plans = plans_of(case.graph)
    key = {name: frozenset(placement.items()) for name, placement in plans.items()}
    runs: dict[frozenset[Any], list[MeasuredRun]] = {each: [] for each in key.values()}
    for _ in range(turns):
        for each, found in runs.items():
            found.append(case.run(dict(each), case.schedules[-1], rounds, most))
    return {name: runs[key[name]] for name in plans}


def row(name: str, runs: Mapping[str, list[MeasuredRun]]) -> list[str]:
    """Return a line of the table."""
    solved = runs[SOLVED]
    cells = [_cell(each, solved) for plan, each in runs.items() if plan != SOLVED]
    return [name, solved[0].schedule, _time(solved), *cells]


def _cell(runs: list[MeasuredRun], solved: list[MeasuredRun]) -> str:
    if runs is solved:
        return "the same plan"
    turns = zip(solved, runs, strict=True)
    ratio = statistics.median(ours.time_per_sample / other.time_per_sample for ours, other in turns)
    return f"{_time(runs)} ({ratio:.2f})"


def _time(runs: list[MeasuredRun]) -> str:
    time = statistics.median(run.time_per_sample for run in runs)
    return f"{time:.1f}{'?' if any(run.doubt for run in runs) else ''}"


def main() -> None:
    """Run the plans and print the table."""
    options_of = parser(__doc__)
    options_of.add_argument("--turns", type=int, default=5, help="runs of each plan, in turn with the others")
    options = options_of.parse_args()
    started, bandwidth = time.monotonic(), begin()
    rows: list[list[str]] = []
    runs: list[MeasuredRun] = []
    for name, case in cases(options, bandwidth):
        found = measured(case, options.rounds, tries(options), options.turns)
        rows.append(row(name, found))
        runs += [run for each in found.values() for run in each]
        print(*rows[-1], file=sys.stderr, flush=True)
    print(f"{circumstances(runs)}\n")
    print(markdown_grid(["model", "schedule", SOLVED, *SPLITS], rows))
    print(f"\n{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main()
